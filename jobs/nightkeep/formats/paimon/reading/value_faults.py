"""The rows of a data file of any writer -> what they contradict of its manifest entry.

One row group is in memory at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import (
    KEY_PREFIX,
    KIND,
    RETRACT_KINDS,
    SEQUENCE,
    PaimonFileReader,
    key_columns,
    value_columns,
)
from nightkeep.formats.paimon.gate.file_audit import ascending, edge_faults, key_faults, with_chunk
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical
from nightkeep.formats.paimon.reading.bounds import Bounds, stated_of_keys, stated_of_values
from nightkeep.gate.column_range import ColumnRange

_LAST_KIND = 3
"""The highest row kind (RowKind.java)."""


def value_faults(reader: PaimonFileReader, bucket: Bucket, file: PaimonDataFile) -> Iterator[str]:
    """`bucket` has the schema that the file was written with. Raises CorruptMetadata, RefusedTable."""
    has_keys = bool(bucket.schemas.current.primary_keys)
    keys = key_columns(bucket) if has_keys else ()
    columns = [*keys, *([SEQUENCE, KIND] if has_keys else []), *value_columns(bucket)]
    seen = {name: ColumnRange() for name in columns}
    retracts, last = 0, None
    for group in range(len(reader.starts) - 1):
        pieces = [*reader.batches(columns, [group])]
        if not pieces:
            continue
        rows = pa.concat_tables(pieces)
        seen = {name: with_chunk(held, rows.column(name)) for name, held in seen.items()}
        if has_keys:
            yield from _order_faults(rows, last, keys, level=file.level)
            last = rows.select(keys).slice(rows.num_rows - 1)
            retracts += int(np.isin(rows.column(KIND).to_numpy(), RETRACT_KINDS).sum())
    if has_keys:
        yield from _system_faults(seen, file, retracts)
        yield from edge_faults(reader, bucket, file)
    yield from _partition_faults(seen, bucket)
    yield from _statistic_faults(seen, bucket.schemas.current, file)


def _order_faults(rows: pa.Table, last: pa.Table | None, keys: Sequence[str], *, level: int) -> Iterator[str]:
    yield from key_faults(rows, keys)
    kinds = rows.column(KIND).to_numpy()
    if ((kinds < 0) | (kinds > _LAST_KIND)).any():
        yield f"has rows of a kind beyond {_LAST_KIND}"
    own = rows.select(keys)
    if level > 0 and not ascending(own if last is None else pa.concat_tables([last, own]), keys):
        yield f"is on level {level}, and its keys do not ascend strictly"


def _system_faults(seen: Mapping[str, ColumnRange], file: PaimonDataFile, retracts: int) -> Iterator[str]:
    """A writer that counts no deletes (pypaimon 2.1.0) hurts no reader while they are on level 0, which is merged."""
    if file.delete_rows is not None and file.delete_rows != retracts and (file.level > 0 or file.delete_rows):
        yield f"has {retracts} deletes, its manifest states {file.delete_rows}"
    low, high = (None if end is None else end.as_py() for end in (seen[SEQUENCE].least, seen[SEQUENCE].greatest))
    if low is not None and high is not None and not file.min_sequence <= low <= high <= file.max_sequence:
        stated = f"its manifest states {file.min_sequence} to {file.max_sequence}"
        yield f"has sequence numbers from {low} to {high}, {stated}"


def _partition_faults(seen: Mapping[str, ColumnRange], bucket: Bucket) -> Iterator[str]:
    fields = bucket.schemas.current.select(bucket.schemas.current.partition_keys)
    values = decode_row(bucket.partition_bytes, [field.type for field in fields])
    for field, value in zip(fields, values, strict=True):
        found = seen[field.name]
        has_values = found.least is not None and found.least.is_valid
        is_other = has_values if value is None else bool(found.nulls) or _is_outside(found, field.type, value, value)
        if is_other:
            yield f"has rows of another partition: its {field.name} is not that of its manifest entry"


def _statistic_faults(seen: Mapping[str, ColumnRange], schema: PaimonSchema, file: PaimonDataFile) -> Iterator[str]:
    """ORC orders CHAR values with blanks at their end, which they do not have here: their bounds are left out."""
    is_orc = format_of(file.name) == "orc"
    by_id = {field.id: field for field in schema.fields}
    for prefix, stated in ((KEY_PREFIX, stated_of_keys), ("", stated_of_values)):
        for number, bounds in stated(file, schema):
            field = by_id[number]
            found = seen.get(prefix + field.name)
            if is_orc and field.type.root is TypeRoot.CHAR:
                bounds = (None, None, bounds[2])
            for fault in () if found is None else _bound_faults(found, field.type, bounds):
                yield f"column {prefix}{field.name} {fault}"


def _bound_faults(seen: ColumnRange, kind: PaimonType, bounds: Bounds) -> Iterator[str]:
    low, high, nulls = bounds
    if nulls is not None and nulls != seen.nulls:
        yield f"has {seen.nulls} nulls, its manifest states {nulls}"
    if not kind.is_nested and _is_outside(seen, kind, low, high):
        yield "has values beyond the bounds that its manifest states"


def _is_outside(seen: ColumnRange, kind: PaimonType, low: Value, high: Value) -> bool:
    """Whether a value is beyond a bound. NaN and the sign of zero are left out: engines order them differently."""
    if seen.least is None or seen.greatest is None or not seen.least.is_valid:
        return False
    least, greatest = (_plain(canonical(end, kind)) for end in (seen.least, seen.greatest))
    low, high = _plain(low), _plain(high)
    below = None not in (low, least) and sort_key((least,), (kind,)) < sort_key((low,), (kind,))
    above = None not in (high, greatest) and sort_key((greatest,), (kind,)) > sort_key((high,), (kind,))
    return below or above


def _plain(value: Value) -> Value:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else value + 0.0
