"""Values of rows in Spark -> values for documents and pages, or keyed hashes, where none may reach a document.

Python has no date before year 1 or after 9999, and a row with one cannot be collected as it is. Spark has them, and so
do the formats. So Spark makes the texts of dates and times.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import types as T

from nightkeep.errors import EvidenceError
from nightkeep.records.check_report import Difference, Row, UnitDifference
from nightkeep.records.keyed_hash import keyed_hash

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


def without_values(differences: Sequence[UnitDifference], keys: Sequence[str]) -> tuple[UnitDifference, ...]:
    """The differences with a keyed hash for each row: of its `keys`, or of the whole row in a table without keys.

    The hash is of the values as compact JSON in ASCII, `[1,"a"]`, as they are in a document with rows. Without a key to
    hash by, no rows are listed at all: the counts and the columns are evidence enough to hold a table.
    """
    return tuple(replace(each, difference=_hashed(each.difference, keys)) for each in differences)


def _hashed(difference: Difference, keys: Sequence[str]) -> Difference:
    bare = replace(difference, missing_rows=(), extra_rows=())
    try:
        missing, extra = (
            tuple(_hash(row, keys) for row in rows) for rows in (difference.missing_rows, difference.extra_rows)
        )
    except EvidenceError as failure:
        return replace(bare, note=f"no hashes of keys: {failure}")
    return replace(bare, missing_keys=missing, extra_keys=extra)


def _hash(row: Row, keys: Sequence[str]) -> str:
    values = [row[name] for name in keys or row]
    return keyed_hash(json.dumps(values, separators=(",", ":"), default=str).encode("ascii"))
