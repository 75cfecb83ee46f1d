"""Iceberg types -> the Arrow types of rows in memory, and of columns in data files.

Iceberg table spec, "Primitive Types", "Nested Types" and "Parquet" (field ids).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from nightkeep.encodings.nested_values import map_of
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.iceberg.metadata.variants import VariantType
from nightkeep.model.arrow_types import FIELD_ID, ArrowField
from nightkeep.model.variant_type import VARIANT

_Tag = Callable[[int], dict[bytes | str, bytes | str] | None]
_Build = Callable[[Any, _Tag], pa.DataType]


def arrow_type(kind: IcebergType) -> pa.DataType:
    """The Arrow type of a column's values. A uuid is 16 bytes, a time of day is in microseconds.

    All nested fields but a map's keys are nullable, even required ones. Raises RefusedTable for a type that we do not
    handle.
    """
    return _type(kind, _untagged)


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of rows, by their current names, in the table's order. Raises as `arrow_type`."""
    return pa.schema([_field(field, _untagged, nullable=True) for field in schema.fields])


def shown_schema(schema: Schema) -> pa.Schema:
    """As `arrow_schema`, with Arrow's own type for uuids. Raises as `arrow_type`."""
    return pa.schema([_field(field, _shown, nullable=True) for field in schema.fields])


def parquet_field(field: NestedField) -> ArrowField:
    """A column of data files: with field ids at every level, required fields not nullable. Raises as `arrow_type`."""
    return _field(field, _tagged, nullable=not field.required)


def _untagged(field_id: int) -> None:
    return None


def _shown(field_id: int) -> None:
    return None


def _tagged(field_id: int) -> dict[bytes | str, bytes | str]:
    return {FIELD_ID: str(field_id).encode()}


def _type(kind: IcebergType, tag: _Tag) -> pa.DataType:
    build = _BUILD.get(type(kind))
    if build is None:
        raise RefusedTable("table", f"values of type {kind} are not handled", "use the engine's own maintenance")
    try:
        return build(kind, tag)
    except (ValueError, OverflowError, TypeError) as failure:
        # Arrow's own errors are subclasses of these; errors of nested types were raised here already.
        raise CorruptMetadata(f"column type {kind}", "a type that Iceberg has", reason_of(failure)) from failure


def _field(field: NestedField, tag: _Tag, *, nullable: bool) -> ArrowField:
    return pa.field(field.name, _type(field.field_type, tag), nullable=nullable, metadata=tag(field.field_id))


def _inner(field: NestedField, tag: _Tag) -> ArrowField:
    return _field(field, tag, nullable=tag is not _tagged or not field.required)


def _struct(kind: StructType, tag: _Tag) -> pa.DataType:
    return pa.struct([_inner(field, tag) for field in kind.fields])


def _list(kind: ListType, tag: _Tag) -> pa.DataType:
    return pa.list_(_inner(kind.element_field, tag))


def _map(kind: MapType, tag: _Tag) -> pa.DataType:
    return map_of(_field(kind.key_field, tag, nullable=False), _inner(kind.value_field, tag))


def _plain(kind: pa.DataType) -> _Build:
    return lambda _, tag: kind


_BUILD: Final[Mapping[type[IcebergType], _Build]] = {
    BooleanType: _plain(pa.bool_()),
    IntegerType: _plain(pa.int32()),
    LongType: _plain(pa.int64()),
    FloatType: _plain(pa.float32()),
    DoubleType: _plain(pa.float64()),
    DecimalType: lambda kind, _: pa.decimal128(kind.precision, kind.scale),
    DateType: _plain(pa.date32()),
    TimeType: _plain(pa.time64("us")),
    TimestampType: _plain(pa.timestamp("us")),
    TimestamptzType: _plain(pa.timestamp("us", "UTC")),
    TimestampNanoType: _plain(pa.timestamp("ns")),
    TimestamptzNanoType: _plain(pa.timestamp("ns", "UTC")),
    StringType: _plain(pa.string()),
    UUIDType: lambda _, tag: pa.binary(16) if tag is _untagged else pa.uuid(),
    FixedType: lambda kind, _: pa.binary(len(kind)),
    BinaryType: _plain(pa.binary()),
    UnknownType: _plain(pa.null()),
    VariantType: _plain(VARIANT),
    StructType: _struct,
    ListType: _list,
    MapType: _map,
}
