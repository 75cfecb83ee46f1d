"""Values of rows in Spark -> values for documents and pages.

Python has no date before year 1 or after 9999, and a row with one cannot be collected as it is. Spark has them, and so
do the formats. So Spark makes the texts of dates and times.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import types as T

_TIMES = (T.TimestampType, T.TimestampNTZType)
_TEMPORAL = (T.DateType, *_TIMES)


def readable(value: Column, kind: T.DataType) -> Column:
    """The column with its dates and times as texts, nested ones too."""
    texts = _with_texts(kind)
    return value if texts == kind else value.cast(texts)


def json_value(value: object, kind: T.DataType) -> object:
    """A collected value of a `readable` column of this type."""
    if value is None:
        return None
    if isinstance(kind, _TIMES):
        return _iso(str(value))
    if isinstance(kind, T.ArrayType) and isinstance(value, list):
        return [json_value(each, kind.elementType) for each in value]
    if isinstance(kind, T.MapType) and isinstance(value, dict):
        return {str(json_value(key, kind.keyType)): json_value(each, kind.valueType) for key, each in value.items()}
    if isinstance(kind, T.StructType) and isinstance(value, tuple):
        return [json_value(each, field.dataType) for each, field in zip(value, kind, strict=True)]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value


def _with_texts(kind: T.DataType) -> T.DataType:
    """The type with strings in place of its dates and times."""
    if isinstance(kind, _TEMPORAL):
        return T.StringType()
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_texts(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(_with_texts(kind.keyType), _with_texts(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, T.StructType):
        fields = [T.StructField(field.name, _with_texts(field.dataType), field.nullable) for field in kind]
        return T.StructType(fields)
    return kind


def _iso(text: str) -> str:
    """Spark's text of a time in ISO 8601: a `T` between date and time, and no fraction or six digits of it."""
    date, _, time = text.partition(" ")
    whole, point, fraction = time.partition(".")
    return f"{date}T{whole}{point}{fraction.ljust(6, '0') if point else ''}"
