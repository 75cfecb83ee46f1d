"""A version's schema string -> what Spark reads from data files, and each column as the check compares it.

The schema string is in Spark's JSON format, so Spark parses it. Our mapping to Arrow is not used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.delta.metadata.schema import ColumnMapping
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.spark.releases import VARIANT
from nightkeep.spark.variant_text import variant_text

_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_PARQUET_ID = "parquet.field.id"
_JSON: Mapping[str, str] = {"ignoreNullFields": "false"}


@dataclass(frozen=True, slots=True)
class DeltaColumns:
    """The columns of one version. `partition` has the partition columns by logical name."""

    table: T.StructType
    mapping: ColumnMapping
    partition: frozenset[str]
    tracking: tuple[str, ...]
    """Names in data files of the stored row id and row commit version; empty without row tracking."""

    @staticmethod
    def of(snapshot: DeltaSnapshot) -> DeltaColumns:
        schema = snapshot.schema
        tracking = schema.row_tracking
        return DeltaColumns(
            T.StructType.fromJson(json.loads(str(snapshot.raw_metadata["schemaString"]))),
            schema.mapping,
            frozenset(schema.partition_columns),
            (tracking.row_id, tracking.commit_version) if tracking else (),
        )

    def physical(self, field: T.StructField) -> str:
        """The physical name of a field: its name in data files, statistics and partition values."""
        return field.name if self.mapping is ColumnMapping.NONE else str((field.metadata or {})[_PHYSICAL])

    def stored(self) -> T.StructType:
        """The schema to read data files with: physical names, with field ids if columns are matched by id.

        Left out are partition columns, whose values in files do not count, and void columns, which files never have.
        """
        held = [field for field in self.table.fields if field.name not in self.partition]
        tracked = [T.StructField(name, T.LongType()) for name in self.tracking]
        return T.StructType([*self._struct(T.StructType(held)).fields, *tracked])

    def _struct(self, kind: T.StructType) -> T.StructType:
        return T.StructType([self._field(f) for f in kind.fields if not isinstance(f.dataType, T.NullType)])

    def _field(self, field: T.StructField) -> T.StructField:
        by_id = self.mapping is ColumnMapping.ID
        metadata = {_PARQUET_ID: (field.metadata or {})[_ID]} if by_id else None
        return T.StructField(self.physical(field), self._type(field.dataType), metadata=metadata)

    def _type(self, kind: T.DataType) -> T.DataType:
        if isinstance(kind, T.StructType):
            return self._struct(kind)
        if isinstance(kind, T.ArrayType):
            return T.ArrayType(self._type(kind.elementType))
        if isinstance(kind, T.MapType):
            return T.MapType(self._type(kind.keyType), self._type(kind.valueType))
        return kind

    def text(self, value: Column, kind: T.DataType) -> Column:
        """A nested value as JSON with the table's names, because Spark cannot hash or group maps.

        A map is its entries in stored order. Floats, times, decimals and bytes become text without loss.
        """
        if isinstance(kind, VARIANT):
            return variant_text(value)
        return F.to_json(self._exact(value, kind), dict(_JSON))

    def _exact(self, value: Column, kind: T.DataType) -> Column:
        if isinstance(kind, T.StructType):
            inner = F.struct(*(self._member(value, field).alias(field.name) for field in kind.fields))
            return F.when(value.isNotNull(), inner)
        if isinstance(kind, T.ArrayType):
            return F.transform(value, self._each(kind.elementType))
        if isinstance(kind, T.MapType):
            key, item = self._each(kind.keyType), self._each(kind.valueType)
            return F.transform(
                F.map_entries(value), lambda e: F.struct(key(e["key"]).alias("key"), item(e["value"]).alias("value"))
            )
        return _scalar(value, kind)

    def _each(self, kind: T.DataType) -> Callable[[Column], Column]:
        return lambda value: self._exact(value, kind)

    def _entry(self, kind: T.MapType) -> Callable[[Column], Column]:
        members = (("key", self._each(kind.keyType)), ("value", self._each(kind.valueType)))
        return lambda entry: F.struct(*(exact(entry[name]).alias(name) for name, exact in members))

    def _member(self, value: Column, field: T.StructField) -> Column:
        if isinstance(field.dataType, T.NullType):
            return F.lit(None).cast("string")
        return self._exact(value.getField(self.physical(field)), field.dataType)


def is_nested(kind: T.DataType) -> bool:
    return isinstance(kind, (T.StructType, T.ArrayType, T.MapType, *VARIANT))


def quoted(name: str) -> str:
    """A column's name in backticks, so that Spark does not take dots for nesting."""
    return f"`{name.replace('`', '``')}`"


def _scalar(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.BinaryType):
        return F.hex(value)
    if isinstance(kind, VARIANT):
        return variant_text(value)
    numbers = T.BooleanType | T.ByteType | T.ShortType | T.IntegerType | T.LongType | T.StringType
    return value if isinstance(kind, numbers) else value.cast("string")
