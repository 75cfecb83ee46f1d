"""One new data file and its metadata record -> faults. Every number is computed again from the file's bytes.

No number of the rewrite is trusted. The file is decoded once, for this and for the fingerprint of its rows. One row
group is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.paimon.data.columns import (
    KEY_PREFIX,
    KIND,
    RETRACT_KINDS,
    SEQUENCE,
    PaimonFileReader,
    key_columns,
    value_columns,
)
from nightkeep.formats.paimon.gate.audited_rows import NONE_SHOWN, AuditedRows
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.schema import skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical
from nightkeep.gate.column_range import ColumnRange
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model.arrow_types import Array, ChunkedArray
from nightkeep.storage import Storage

EXACT = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
        TypeRoot.DATE,
    }
)
"""Types whose bounds no writer cuts, so that readers answer MIN and MAX from them without the rows."""
RowFaults = Callable[[pa.Table, pa.Table | None, Sequence[str]], Iterator[str]]
"""Rows of a row group, the last row before it, and the key columns -> faults. Every row has its keys and its kind.
Texts of a row group may be views, of the row before they are not."""


def file_faults(
    storage: Storage, bucket: Bucket, file: PaimonDataFile, *, shown: AuditedRows = NONE_SHOWN
) -> Iterator[str]:
    """Faults of the data file `file`: its rows, its key and sequence ranges, its statistics. Its rows are `shown`."""
    faults = shown_faults if skips_level0(bucket.schemas.current) else _row_faults
    yield from stated_faults(storage, bucket, file, faults, shown=shown)


def stated_faults(
    storage: Storage, bucket: Bucket, file: PaimonDataFile, row_faults: RowFaults, *, shown: AuditedRows = NONE_SHOWN
) -> Iterator[str]:
    """Faults of rows, and of what metadata states of them."""
    subject, reader = bucket.path(file), PaimonFileReader(storage, bucket, file, decoder=polars_batches)
    if file.rows == 0:
        yield f"{subject}: no rows, expected no file"
        return
    keys = key_columns(bucket)
    columns = [*keys, SEQUENCE, KIND, *value_columns(bucket)]
    seen = {name: ColumnRange() for name in columns}
    before: pa.Table | None = None
    retracts = 0
    for group in range(len(reader.starts) - 1):
        pieces = [*reader.batches(columns, [group])]
        if not pieces:
            continue
        rows = pa.concat_tables(pieces)
        start = int(reader.starts[group])
        for piece in pieces:
            shown.add(bucket, file, start, piece)
            start += piece.num_rows
        yield from (f"{subject}: {fault}" for fault in row_faults(rows, before, keys))
        seen = {name: with_chunk(held, rows.column(name)) for name, held in seen.items()}
        before = without_views(rows.select([*keys, KIND]).slice(rows.num_rows - 1))
        retracts += int(np.isin(rows.column(KIND).to_numpy(), RETRACT_KINDS).sum())
    if file.delete_rows != retracts:
        yield f"{subject}: deleteRowCount {file.delete_rows}, expected {retracts}: readers go by it"
    low, high = (None if end is None else end.as_py() for end in (seen[SEQUENCE].least, seen[SEQUENCE].greatest))
    if (low, high) != (file.min_sequence, file.max_sequence):
        yield f"{subject}: sequence numbers {low} to {high}, metadata states {file.min_sequence} to {file.max_sequence}"
    yield from record_faults(file)
    yield from edge_faults(reader, bucket, file)
    yield from statistic_faults(seen, bucket, file)


def shown_faults(rows: pa.Table, before: pa.Table | None, keys: Sequence[str]) -> Iterator[str]:
    """Faults of rows that readers show as they are stored."""
    if bool(pc.any(pc.is_in(rows.column(KIND), pa.array(RETRACT_KINDS, pa.int8()))).as_py()):
        yield "holds retracts, which readers through vectors would show"
    yield from _row_faults(rows, before, keys)


def with_chunk(held: ColumnRange, column: ChunkedArray) -> ColumnRange:
    """The range with a chunk of the column. Of nested values only nulls count."""
    return held.with_nulls(column) if pa.types.is_nested(column.type) else held.with_chunk(column)


def _row_faults(rows: pa.Table, before: pa.Table | None, keys: Sequence[str]) -> Iterator[str]:
    yield from key_faults(rows, keys)
    own = without_views(rows.select(keys))
    if not ascending(own if before is None else pa.concat_tables([before.select(keys), own]), keys):
        yield "keys do not ascend strictly"


def key_faults(rows: pa.Table, keys: Sequence[str]) -> Iterator[str]:
    for name in keys:
        if not same(rows.column(name), rows.column(name.removeprefix(KEY_PREFIX))):
            yield f"{name} differs from the value column it repeats"


def edge_faults(reader: PaimonFileReader, bucket: Bucket, file: PaimonDataFile) -> Iterator[str]:
    schema, keys = bucket.schemas.current, key_columns(bucket)
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    ends = pa.concat_tables(reader.taken(keys, np.unique([0, file.rows - 1])))
    edges = [
        tuple(canonical(ends.column(name)[row], kind) for name, kind in zip(keys, types, strict=True))
        for row in (0, ends.num_rows - 1)
    ]
    stated = (file.min_key, file.max_key)
    if [sort_key(edge, types) for edge in edges] != [sort_key(edge, types) for edge in stated]:
        subject = bucket.path(file)
        yield f"{subject}: its first or last key differs from what metadata states"


def same(left: ChunkedArray, right: ChunkedArray) -> bool:
    return left.combine_chunks().equals(right.combine_chunks()) or _same_bits(left, right)


def _same_bits(left: ChunkedArray, right: ChunkedArray) -> bool:
    # In Arrow, NaN differs from itself.
    if not pa.types.is_floating(left.type) or left.null_count or right.null_count:
        return False
    kind = f"i{left.type.bit_width // 8}"
    return bool(np.array_equal(left.to_numpy().view(kind), right.to_numpy().view(kind)))


def ascending(rows: pa.Table, keys: Sequence[str]) -> bool:
    """Whether the rows are sorted by Arrow's order and no two neighbours are equal."""
    undecided = np.ones(max(0, rows.num_rows - 1), np.bool_)
    for name in keys:
        column = rows.column(name).combine_chunks()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if pa.types.is_floating(column.type):
            column = _float_order(column)
        before, after = column[:-1], column[1:]
        if bool((_flags(pc.less(after, before)) & undecided).any()):
            return False
        undecided &= _flags(pc.equal(after, before))
    return not bool(undecided.any())


def _float_order(column: Array) -> Array:
    values = column.to_numpy(zero_copy_only=False)
    bits = values.view(f"i{column.type.bit_width // 8}")
    top = np.iinfo(bits.dtype).max
    return pa.array(np.where(np.isnan(values), top, np.where(bits < 0, bits ^ top, bits)))


def _flags(array: Array) -> np.ndarray:
    flags: np.ndarray = array.to_numpy(zero_copy_only=False)
    return flags


def record_faults(file: PaimonDataFile) -> Iterator[str]:
    """Faults of the record of a new file: what would have readers look for rows, columns or indexes elsewhere."""
    unwanted = sorted(name for name in _NEVER_SET if file.record.get(name) not in (None, []))
    if unwanted:
        yield f"{file.name}: {', '.join(unwanted)}, expected none of a new file"


_NEVER_SET = ("_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH", "_EXTRA_FILES", "_FIRST_ROW_ID", "_WRITE_COLS")


def statistic_faults(seen: Mapping[str, ColumnRange], bucket: Bucket, file: PaimonDataFile) -> Iterator[str]:
    """Wrong statistics. Readers skip files by them: null counts must be exact, and bounds must cover all values."""
    schema = bucket.schemas.current
    listed = file.record["_VALUE_STATS_COLS"]
    names = [field.name for field in schema.fields] if listed is None else list(listed)
    keys = [(KEY_PREFIX + name, name) for name in schema.trimmed_keys]
    for section, columns in (("_KEY_STATS", keys), ("_VALUE_STATS", [(name, name) for name in names])):
        stated = file.record[section]
        types = [schema.field(name).type for _, name in columns]
        lows, highs = (decode_row(stated[side], types) for side in ("_MIN_VALUES", "_MAX_VALUES"))
        nulls = stated["_NULL_COUNTS"] or [None] * len(columns)
        for (stored, _), *claim in zip(columns, types, lows, highs, nulls, strict=True):
            yield from (f"{bucket.path(file)}: {stored} {fault}" for fault in _claim_faults(seen[stored], *claim))


def _claim_faults(seen: ColumnRange, kind: PaimonType, low: Value, high: Value, nulls: int | None) -> Iterator[str]:
    """Faults of one column's statistics, without values of rows. None means that nothing is stated."""
    if nulls is not None and nulls != seen.nulls:
        yield f"has {seen.nulls} nulls, statistics state {nulls}"
    if low is None and high is None:
        return
    if seen.nans:
        yield "has NaN, which no range of statistics covers"
    if seen.least is None or seen.greatest is None or not seen.least.is_valid:
        return
    least, greatest = canonical(seen.least, kind), canonical(seen.greatest, kind)
    below = low is not None and sort_key((least,), (kind,)) < sort_key((low,), (kind,))
    above = high is not None and sort_key((greatest,), (kind,)) > sort_key((high,), (kind,))
    if below or above:
        yield f"has a value {'below the minimum' if below else 'above the maximum'} that statistics state"
    elif kind.root in EXACT and (low not in (None, least) or high not in (None, greatest)):
        yield "has no value at an end of the range that statistics state, which readers take for a value"
