"""A table's columns -> the schema that Spark reads data files with, and each column in the form to compare.

Shares nothing with our mapping to Arrow. Times of day and timestamps of nanoseconds are longs, uuid and fixed are
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID

import pyarrow as pa
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
    PrimitiveType,
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
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.variants import VariantType
from nightkeep.model.arrow_types import Array
from nightkeep.spark.releases import VARIANT
from nightkeep.spark.variant_text import variant_text

ROW_ID: Final = NestedField(2147483540, "_row_id", LongType())
LAST_UPDATED: Final = NestedField(2147483539, "_last_updated_sequence_number", LongType())
"""Columns of row lineage, by their reserved ids (spec, "Reserved Field IDs")."""

_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_PARQUET_ID: Final = "parquet.field.id"
_JSON: Final[Mapping[str, str]] = {"ignoreNullFields": "false"}

Names = Mapping[int, str]
"""Names of columns in a file without field ids, nested ones too, by the ids that the name mapping gives them."""
Filling = Callable[[NestedField, Column], Column]
"""(field, its value in a file) -> the value that readers see, also if the file lacks the field."""


def stored_name(field: NestedField) -> str:
    """The name of a field in frames of stored rows. A table's own names may clash, and may change."""
    return stored_number(field.field_id)


def stored_number(number: int) -> str:
    """As stored_name, of a field's id."""
    return f"f{number}"


def spark_type(kind: IcebergType) -> T.DataType:
    """The Spark type of values, with ids as names in structs. Raises RefusedTable for a type that Spark cannot read."""
    return _type(kind, lambda field: T.StructField(stored_name(field), spark_type(field.field_type)))


def read_schema(fields: Sequence[NestedField], names: Names | None) -> T.StructType:
    """The schema for Spark's Parquet reader: columns by field id, or by name if `names` is given."""

    def struct_field(field: NestedField) -> T.StructField:
        kind = _type(field.field_type, struct_field)
        if names is None:
            return T.StructField(stored_name(field), kind, metadata={_PARQUET_ID: field.field_id})
        return T.StructField(names.get(field.field_id, f"nightkeep-{field.field_id}"), kind)

    return T.StructType([struct_field(field) for field in fields])


def compared_type(kind: IcebergType) -> T.DataType:
    """The type that values are compared as; a nested value and a variant are compared as text."""
    return spark_type(kind) if kind.is_primitive else T.StringType()


def compared(value: Column, kind: IcebergType, filling: Filling) -> Column:
    """A value in the form to compare. A nested value becomes JSON, as Spark cannot hash or group maps.

    A map becomes its entries in stored order. Floats, times, decimals and bytes become exact text.
    """
    if isinstance(kind, VariantType):
        return variant_text(value)
    return value if kind.is_primitive else F.to_json(_exact(value, kind, filling), dict(_JSON))


def leaves(fields: Sequence[NestedField]) -> Iterator[tuple[NestedField, Column]]:
    """Columns of primitive type and variants, also within structs, with their stored values: these may have
    statistics."""
    for field in fields:
        yield from _leaves(field, F.col(stored_name(field)))


def typed(value: Column, kind: IcebergType) -> Column:
    """A value from metadata, in the Spark type of a column."""
    match kind:
        case DateType():
            return F.date_from_unix_date(value.cast("int"))
        case TimestamptzType():
            return F.timestamp_micros(value)
        case TimestampType():
            # Correct because the session's time zone is UTC.
            return F.timestamp_micros(value).cast("timestamp_ntz")
        case _:
            return value.cast(spark_type(kind))


def literal(value: object, kind: IcebergType) -> Column:
    """A default from metadata as a Spark literal."""
    return typed(F.lit(_plain(value)), kind)


def values_array(values: Sequence[object], kind: IcebergType) -> Array:
    """Values from metadata, dates and times as numbers, to pass to Spark; `typed` gives them their type there."""
    plain = [_plain(value) for value in values]
    if isinstance(kind, DecimalType):
        return pa.array(plain, pa.decimal128(kind.precision, kind.scale))
    return pa.array(plain, _CARRIED.get(type(kind), pa.int64()))


def _plain(value: object) -> object:
    """A value in the form of manifests: pyiceberg has defaults of dates and times as Python objects, not numbers."""
    match value:
        case UUID():
            return value.bytes
        case datetime():
            return (value - _EPOCH.replace(tzinfo=value.tzinfo and UTC)) // _MICROSECOND
        case date():
            return (value - _EPOCH.date()).days
        case time():
            return (datetime.combine(_EPOCH, value) - _EPOCH) // _MICROSECOND
    return value


def _type(kind: IcebergType, struct_field: Callable[[NestedField], T.StructField]) -> T.DataType:
    match kind:
        case StructType():
            return T.StructType([struct_field(field) for field in kind.fields])
        case ListType():
            return T.ArrayType(_type(kind.element_type, struct_field))
        case MapType():
            return T.MapType(_type(kind.key_type, struct_field), _type(kind.value_type, struct_field))
        case DecimalType():
            return T.DecimalType(kind.precision, kind.scale)
        case VariantType() if VARIANT:
            return VARIANT[0]()
    if type(kind) not in _PRIMITIVES:
        raise RefusedTable("table", f"values of type {kind} cannot be read back in Spark", "check them by its engine")
    return _PRIMITIVES[type(kind)]


def _leaves(field: NestedField, value: Column) -> Iterator[tuple[NestedField, Column]]:
    if isinstance(field.field_type, StructType):
        for inner in field.field_type.fields:
            yield from _leaves(inner, value.getField(stored_name(inner)))
    elif isinstance(field.field_type, PrimitiveType | VariantType) and not isinstance(field.field_type, UnknownType):
        yield field, value


def _exact(value: Column, kind: IcebergType, filling: Filling) -> Column:
    match kind:
        case StructType():
            members = (_member(value, field, filling).alias(field.name) for field in kind.fields)
            return F.when(value.isNotNull(), F.struct(*members))
        case ListType():
            return F.transform(value, lambda each: _exact(each, kind.element_type, filling))
        case MapType():
            return F.transform(F.map_entries(value), lambda entry: _entry(entry, kind, filling))
        case BooleanType() | IntegerType() | LongType() | StringType():
            return value
        case BinaryType() | FixedType() | UUIDType():
            return F.hex(value)
        case VariantType():
            return variant_text(value)
        case _:
            return value.cast("string")


def _member(value: Column, field: NestedField, filling: Filling) -> Column:
    return _exact(filling(field, value.getField(stored_name(field))), field.field_type, filling)


def _entry(entry: Column, kind: MapType, filling: Filling) -> Column:
    key, item = _exact(entry["key"], kind.key_type, filling), _exact(entry["value"], kind.value_type, filling)
    return F.struct(key.alias("key"), item.alias("value"))


_PRIMITIVES: Final[Mapping[type[IcebergType], T.DataType]] = {
    BooleanType: T.BooleanType(),
    IntegerType: T.IntegerType(),
    LongType: T.LongType(),
    FloatType: T.FloatType(),
    DoubleType: T.DoubleType(),
    DateType: T.DateType(),
    TimeType: T.LongType(),
    TimestampType: T.TimestampNTZType(),
    TimestamptzType: T.TimestampType(),
    TimestampNanoType: T.LongType(),
    TimestamptzNanoType: T.LongType(),
    StringType: T.StringType(),
    UUIDType: T.BinaryType(),
    FixedType: T.BinaryType(),
    BinaryType: T.BinaryType(),
    # No file has such a column, and Spark reads what is missing as null, but not as its own type void.
    UnknownType: T.StringType(),
}
_CARRIED: Final[Mapping[type[IcebergType], pa.DataType]] = {
    BooleanType: pa.bool_(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    StringType: pa.string(),
    UUIDType: pa.binary(),
    FixedType: pa.binary(),
    BinaryType: pa.binary(),
}
"""The Arrow types that carry values to Spark; values of other types are integers."""
