"""Statistics of manifest entries, and partition values -> bounds of columns, in the types of the version that is read.

Bounds were written under the file's own schema, and are matched by field id. What a file does not state is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.type_changes import is_converted
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value
from nightkeep.kernels.spans import ColumnSpans
from nightkeep.model.arrow_types import Array
from nightkeep.protocol.reading import Path

Bounds = tuple[Value, Value, int | None]
"""The least value, the greatest, and the number of nulls; None where unknown."""
_UNKNOWN: Bounds = (None, None, None)
_UNIT_NANOS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_INTEGERS = frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT})
_FLOATS = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})


def partition_spans(bucket: Bucket, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    """The bucket's partition values, as bounds of one part."""
    schema = bucket.schemas.current
    fields = schema.select(schema.partition_keys)
    values = decode_row(bucket.partition_bytes, [field.type for field in fields])
    return {
        (field.name,): _spans(field.type, [(value, value, int(value is None))], [1])
        for field, value in zip(fields, values, strict=True)
        if (field.name,) in paths
    }


def file_spans(bucket: Bucket, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
    """Bounds of columns in each file of the bucket. Statistics that do not decode are unknown: they are optional."""
    schema, rows = bucket.schemas.current, [file.rows for file in bucket.files]
    wanted = [field for field in schema.fields if (field.name,) in paths and field.type.is_primitive]
    found = [_by_name(bucket, file, wanted) for file in bucket.files]
    of_values: dict[Path, ColumnSpans] = {
        (field.name,): _spans(field.type, [bounds.get(field.name, _UNKNOWN) for bounds in found], rows)
        for field in wanted
    }
    return {**of_values, **_in_every_file(partition_spans(bucket, paths), len(rows))}


def _in_every_file(spans: Mapping[Path, ColumnSpans], files: int) -> Mapping[Path, ColumnSpans]:
    places: Array = pa.array([0] * files, pa.int64())
    return {
        path: ColumnSpans(*(each.take(places) for each in (one.lows, one.highs, one.nulls, one.rows)))
        for path, one in spans.items()
    }


def _by_name(bucket: Bucket, file: PaimonDataFile, wanted: Sequence[PaimonField]) -> Mapping[str, Bounds]:
    """Bounds by current name. A column that the file's schema lacks is null in all of its rows."""
    subject = f"{bucket.path(file)}: statistics"
    written = bucket.schemas.by_id.get(file.schema_id)
    if written is None:
        raise CorruptMetadata(subject, f"a schema among {sorted(bucket.schemas.by_id)}", f"schema {file.schema_id}")
    held = {field.id: field for field in written.fields}
    # Statistics of values are of more columns, those of keys of longer texts.
    by_id = _understood(stated_of_keys, file, written) | _understood(stated_of_values, file, written)
    bounds: dict[str, Bounds] = {}
    for field in wanted:
        if field.id not in held:
            bounds[field.name] = (None, None, file.rows)
        elif field.id in by_id and _alike(held[field.id].type, field.type):
            bounds[field.name] = by_id[field.id]
    return bounds


def _understood(
    read: Callable[[PaimonDataFile, PaimonSchema], Iterator[tuple[int, Bounds]]],
    file: PaimonDataFile,
    written: PaimonSchema,
) -> dict[int, Bounds]:
    try:
        return dict(read(file, written))
    except (ValueError, LookupError, TypeError):
        return {}


def _alike(written: PaimonType, now: PaimonType) -> bool:
    """Whether values of the two types are written alike, so that bounds of one are bounds of the other.

    Of values that are converted not even the number of nulls is known: a DECIMAL that does not fit becomes null.
    """
    if is_converted(written, now):
        return False
    if written.root is now.root:
        return written.scale == now.scale
    return {written.root, now.root} <= _INTEGERS or {written.root, now.root} <= _FLOATS


def stated_of_keys(file: PaimonDataFile, written: PaimonSchema) -> Iterator[tuple[int, Bounds]]:
    if written.primary_keys:
        yield from _decoded(file.record["_KEY_STATS"], written.select(written.trimmed_keys))


def stated_of_values(file: PaimonDataFile, written: PaimonSchema) -> Iterator[tuple[int, Bounds]]:
    """As `stated_of_keys`. Dense statistics name their columns; others are of all."""
    names = file.record.get("_VALUE_STATS_COLS")
    by_name = {field.name: field for field in written.fields}
    if file.record.get("_WRITE_COLS") is None:
        yield from _decoded(
            file.record["_VALUE_STATS"], written.fields if names is None else [by_name[name] for name in names]
        )


def _decoded(stats: Record, fields: Sequence[PaimonField]) -> Iterator[tuple[int, Bounds]]:
    if not all(field.type.is_primitive for field in fields):
        return
    types = [field.type for field in fields]
    nulls = stats.get("_NULL_COUNTS") or [None] * len(types)
    # An empty row stands for no statistics at all (SimpleStats.EMPTY_STATS).
    if not fields or _is_empty(stats["_MIN_VALUES"]):
        return
    lows, highs = (decode_row(stats[side], types, optional=True) for side in ("_MIN_VALUES", "_MAX_VALUES"))
    for field, low, high, null in zip(fields, lows, highs, nulls, strict=True):
        known = type(null) is int and null >= 0
        yield field.id, (low, high, null if known else None)


def _is_empty(row: bytes) -> bool:
    return row[:4] == b"\0\0\0\0"


def _spans(kind: PaimonType, bounds: Sequence[Bounds], rows: Sequence[int]) -> ColumnSpans:
    lows, highs = (_array([each[side] for each in bounds], kind.arrow, up=bool(side)) for side in (0, 1))
    nulls: Array = pa.array([each[2] for each in bounds], pa.int64())
    return ColumnSpans(lows, highs, nulls, pa.array(rows, pa.int64()))


def _array(values: Sequence[Value], kind: pa.DataType, *, up: bool) -> Array:
    """Values of a manifest as the column's type; what the type cannot hold is unknown."""
    if pa.types.is_timestamp(kind):
        return _integers([_ticks(value, _UNIT_NANOS[kind.unit], up=up) for value in values], pa.int64()).cast(kind)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _integers(values, pa.int32()).cast(kind)
    if pa.types.is_integer(kind):
        return _integers(values, kind)
    array: Array = pa.array([None if isinstance(v, float) and v != v else v for v in values], kind)
    return array


def _integers(values: Sequence[Value], kind: pa.DataType) -> Array:
    most = 1 << (kind.bit_width - 1)
    return pa.array([value if isinstance(value, int) and -most <= value < most else None for value in values], kind)


def _ticks(value: Value, nanos: int, *, up: bool) -> int | None:
    if not isinstance(value, int):
        return None
    return -(-value // nanos) if up else value // nanos
