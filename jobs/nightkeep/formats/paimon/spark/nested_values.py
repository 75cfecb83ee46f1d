"""Stored types of values in Spark, and the text of nested values under the current schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.spark.stored_times import StoredTimes, from_bare, is_bare

_AS_TODAY = StoredTimes()


def stored_type(kind: PaimonType, times: StoredTimes = _AS_TODAY) -> T.DataType:
    """The Spark type by which stored values of this type are read; TIME is an int of milliseconds."""
    match kind.root:
        case TypeRoot.DECIMAL:
            return T.DecimalType(kind.precision or 0, kind.scale or 0)
        case TypeRoot.ROW:
            return T.StructType([T.StructField(child.name, stored_type(child.type, times)) for child in kind.children])
        case TypeRoot.ARRAY:
            return T.ArrayType(stored_type(kind.children[0].type, times))
        case TypeRoot.MAP:
            key, value = (stored_type(child.type, times) for child in kind.children)
            return T.MapType(key, value)
        case TypeRoot.MULTISET:
            return T.MapType(stored_type(kind.children[0].type, times), T.IntegerType())
    return T.LongType() if is_bare(kind, times) else _PLAIN[kind.root]


def nested_text(value: Column, written: PaimonType, wanted: PaimonType, times: StoredTimes) -> Column:
    """A nested value as JSON with fields of the current schema by their ids, because Spark cannot hash or group maps.

    A map is its entries in an order of theirs. Floats, times, decimals and bytes become text without loss.
    """
    return F.to_json(_exact(value, written, wanted, times), {"ignoreNullFields": "false"})


def _exact(value: Column, written: PaimonType, wanted: PaimonType, times: StoredTimes) -> Column:
    match wanted.root:
        case TypeRoot.ROW:
            held = {child.id: child for child in written.children}
            fields = [
                (
                    _exact(value.getField(held[child.id].name), held[child.id].type, child.type, times)
                    if child.id in held
                    else F.lit(None).cast("string")
                ).alias(f"f{child.id}")
                for child in wanted.children
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
        case TypeRoot.ARRAY:
            return F.transform(value, _each(written.children[0].type, wanted.children[0].type, times))
        case TypeRoot.MAP | TypeRoot.MULTISET:
            key = _each(written.children[0].type, wanted.children[0].type, times)
            item = _each(_item(written), _item(wanted), times)
            entries = F.transform(
                F.map_entries(value), lambda e: F.struct(key(e["key"]).alias("key"), item(e["value"]).alias("value"))
            )
            return F.sort_array(entries)
    shown = (from_bare(value, written) if is_bare(written, times) else value).cast(stored_type(wanted))
    if TypeRoot.CHAR in (written.root, wanted.root):
        # Blanks at the end of CHAR values of ORC files are of no account.
        shown = F.rtrim(shown)
    return F.hex(shown) if isinstance(stored_type(wanted), T.BinaryType) else shown.cast("string")


def _each(written: PaimonType, wanted: PaimonType, times: StoredTimes) -> Callable[[Column], Column]:
    return lambda value: _exact(value, written, wanted, times)


def _item(kind: PaimonType) -> PaimonType:
    return kind.children[1].type if kind.root is TypeRoot.MAP else PaimonType(TypeRoot.INT)


_PLAIN: Mapping[TypeRoot, T.DataType] = {
    TypeRoot.BOOLEAN: T.BooleanType(),
    TypeRoot.TINYINT: T.ByteType(),
    TypeRoot.SMALLINT: T.ShortType(),
    TypeRoot.INT: T.IntegerType(),
    TypeRoot.BIGINT: T.LongType(),
    TypeRoot.FLOAT: T.FloatType(),
    TypeRoot.DOUBLE: T.DoubleType(),
    TypeRoot.CHAR: T.StringType(),
    TypeRoot.VARCHAR: T.StringType(),
    TypeRoot.BINARY: T.BinaryType(),
    TypeRoot.VARBINARY: T.BinaryType(),
    TypeRoot.DATE: T.DateType(),
    TypeRoot.TIME: T.IntegerType(),
    TypeRoot.TIMESTAMP: T.TimestampNTZType(),
    TypeRoot.TIMESTAMP_LTZ: T.TimestampType(),
}
