"""One new data file and its add action -> faults. Every number is computed again from the file's bytes.

No number of the rewrite is trusted. The file is decoded once, for this and for the fingerprint of its rows. One batch
is in memory at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import only
from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.delta.data.bounds import ColumnBounds, every_bounds
from nightkeep.formats.delta.data.columns import DeltaFileReader, every_column
from nightkeep.formats.delta.gate.clustering_audit import missing_faults
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import leaves
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.gate.column_range import ColumnRange, is_exact, watched
from nightkeep.model.arrow_types import ChunkedArray, Scalar, field_id
from nightkeep.model.variant_type import Shredding, is_variant
from nightkeep.protocol import Show
from nightkeep.storage import Storage


def file_faults(storage: Storage, unit: DeltaUnit, file: DeltaDataFile, *, live: BitMap64, show: Show) -> Iterator[str]:
    """Faults of `file`: its rows, its columns, its statistics. Shows its `live` rows, with every column."""
    reader = DeltaFileReader(storage, unit, file, decoder=polars_batches, shredding=Shredding.KEPT)
    if file.rows == 0 or reader.rows != file.rows:
        yield f"{file.name}: {reader.rows} rows, expected some and as many as its statistics state, {file.rows}"
    stored = reader.footer.schema.to_arrow_schema()
    yield from (f"{file.name}: {fault}" for fault in _column_faults(stored, unit.schema))
    seen = {leaf.path: ColumnRange() for leaf in leaves(unit.schema)}
    pieces = reader.pieces(every_column(unit.schema), range(reader.footer.num_row_groups))
    for piece in only(watched(pieces, seen, _seen), live):
        for batch in piece.combine_chunks().to_batches():
            show(batch)
    claims = every_bounds(unit.schema, [file])
    for path, held in seen.items():
        yield from (f"{file.name}: {'.'.join(path)} {fault}" for fault in _claim_faults(held, claims[path]))
    yield from (f"{file.name}: {fault}" for fault in missing_faults(unit.schema, file, seen))


def _column_faults(stored: pa.Schema, schema: DeltaSchema) -> Iterator[str]:
    """Faults of columns, matched by name, or by id with column mapping. Readers take a missing column for null."""
    tracked = schema.row_tracking
    # Data files do not hold columns of type void.
    declared = {field.physical: field for field in schema.data_fields if not pa.types.is_null(field.type)}
    extra = {tracked.row_id, tracked.commit_version} if tracked else set()
    # Partition columns may be in the file too: delta-spark writes them, and readers ignore them.
    extra |= {field.physical for field in schema.fields if field.name in schema.partition_columns}
    unknown = [name for name in stored.names if name not in declared and name not in extra]
    missing = [name for name in declared if name not in stored.names]
    if unknown or missing or len(set(stored.names)) < len(stored.names):
        yield f"columns {', '.join(stored.names)}; missing {missing}, not of the schema {unknown}"
    if schema.mapping is ColumnMapping.NONE:
        return
    for name in declared.keys() & set(stored.names):
        number, expected = field_id(stored.field(name)), declared[name].id
        if number != expected:
            yield f"column {name}: field id {number}, the schema has {expected}"
        yield from _nested_id_faults(name, stored.field(name).type, declared[name].stored)


def _nested_id_faults(name: str, stored: pa.DataType, declared: pa.DataType) -> Iterator[str]:
    """Wrong field ids of nested struct fields. Fields without an id in the schema, or of variants, may have any."""
    if is_variant(declared):
        return
    for place in range(declared.num_fields if stored.num_fields == declared.num_fields else 0):
        child, expected = stored.field(place), declared.field(place)
        if isinstance(declared, pa.StructType) and child.name != expected.name:
            yield f"column {name}: field {child.name}, the schema has {expected.name}"
        if field_id(expected) is not None and field_id(child) != field_id(expected):
            yield f"column {name}.{expected.name}: field id {field_id(child)}, the schema has {field_id(expected)}"
        yield from _nested_id_faults(f"{name}.{expected.name}", child.type, expected.type)


def _seen(held: ColumnRange, values: ChunkedArray) -> ColumnRange:
    return held.with_chunk(values) if _ranged(values.type) else held.with_nulls(values)


def _ranged(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_binary(kind) and not pa.types.is_null(kind)


def _claim_faults(seen: ColumnRange, claims: ColumnBounds) -> Iterator[str]:
    """Wrong statistics, reported without values of rows. Readers skip files by them: null counts must be exact, and
    bounds must cover all values."""
    nulls, low, high = claims.nulls[0], claims.lows[0], claims.highs[0]
    if nulls.is_valid and nulls.as_py() != seen.nulls:
        yield f"has {seen.nulls} nulls, statistics state {nulls}"
    if seen.nans and high.is_valid and high.as_py() != math.inf:
        # Spark orders NaN above any number. `bounds` reads NaN in statistics as infinity.
        yield "has NaN, above the maximum that statistics state"
    if seen.least is not None and _holds(pc.less(seen.least, low)):
        yield "has a value below the minimum that statistics state"
    if seen.greatest is not None and _holds(pc.greater(seen.greatest, high)):
        yield "has a value above the maximum that statistics state"
    is_stated_exactly = is_exact(claims.lows.type) and not seen.nans
    if is_stated_exactly and (_is_off(seen.least, low, pc.less) or _is_off(seen.greatest, high, pc.greater)):
        yield "has no value at an end of the range that statistics state, which readers take for a value"


def contradictions(
    reader: DeltaFileReader, unit: DeltaUnit, file: DeltaDataFile, groups: Sequence[int]
) -> Iterator[str]:
    """What the values in some row groups of a file contradict of its statistics, whoever wrote them. Unlike in
    `file_faults`, columns may be missing, bounds may be wide, and NaN may be above the maximum: readers that compare
    with NaN read all files."""
    is_whole = len(groups) == reader.footer.num_row_groups
    seen = {leaf.path: ColumnRange() for leaf in leaves(unit.schema)}
    names = sorted({path[0] for path in seen})
    for _ in watched(reader.pieces(names, groups), seen, _seen):
        pass
    claims = every_bounds(unit.schema, [file])
    for path, held in seen.items():
        name, stated = f"{file.name}: {'.'.join(path)}", claims[path]
        nulls, low, high = stated.nulls[0], stated.lows[0], stated.highs[0]
        if nulls.is_valid and (held.nulls != nulls.as_py() if is_whole else held.nulls > nulls.as_py()):
            at_least = "" if is_whole else "at least "
            yield f"{name} has {at_least}{held.nulls} nulls, statistics state {nulls}"
        if held.least is not None and _holds(pc.less(held.least, _wider(low, -1))):
            yield f"{name} has a value below the minimum that statistics state"
        if held.greatest is not None and _holds(pc.greater(held.greatest, _wider(high, 1))):
            yield f"{name} has a value above the maximum that statistics state"


def _wider(end: Scalar, sign: int) -> Scalar:
    """The end of a range of floats, moved outwards by the rounding of a 32-bit float: delta-spark 4.4.0 writes doubles
    of widened columns by a float's short text."""
    value = end.as_py() if pa.types.is_floating(end.type) else None
    return end if value is None else pa.scalar(value + sign * abs(value) * _FLOAT_ROUNDING, end.type)


_FLOAT_ROUNDING: Final = 2.0**-23


def _is_off(end: Scalar | None, stated: Scalar, beyond: Callable[[Scalar, Scalar], Scalar]) -> bool:
    """Whether statistics state an end of a range that is beyond all values."""
    return stated.is_valid if end is None or not end.is_valid else _holds(beyond(stated, end))


def _holds(flag: Scalar) -> bool:
    """Whether the comparison holds. Null means that there is no value to compare."""
    return flag.is_valid and bool(flag.as_py())
