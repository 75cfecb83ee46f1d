"""Arrow types of a table <-> those that Spark takes as batches: microseconds, and bytes of any length."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from nightkeep.errors import RefusedTable
from nightkeep.model.arrow_types import ArrowField


def arrow_for_spark(columns: pa.Schema, *, table: str) -> pa.Schema:
    """The columns as Spark takes them. Nanoseconds are cut to microseconds, as Spark's times are.

    Raises RefusedTable for a type that Spark does not have, naming the column."""
    return pa.schema([_field(field, f"{table}: column {field.name}") for field in columns])


def spark_schema(columns: pa.Schema) -> StructType:
    """Spark's names of the types, nullable, as any view may show nulls."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def as_spark_takes(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of `arrow_for_spark`."""
    if batch.schema.equals(columns):
        return batch
    arrays = [
        array if array.type == field.type else array.cast(field.type, safe=False)
        for array, field in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _field(field: ArrowField, subject: str) -> ArrowField:
    return pa.field(field.name, _type(field.type, subject), nullable=field.nullable)


def _type(kind: pa.DataType, subject: str) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type, subject)
    if isinstance(kind, pa.StructType):
        return pa.struct([_field(child, subject) for child in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(_field(kind.value_field, subject))
    if isinstance(kind, pa.MapType):
        return pa.map_(_type(kind.key_type, subject), _type(kind.item_type, subject))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_time(kind):
        feature = "a time of day is no type of Spark's data sources"
        raise RefusedTable(subject, feature, "leave it out with the option columns")
    return kind
