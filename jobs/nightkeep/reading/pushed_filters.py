"""Filters that Spark pushes down -> tests of rows. A filter that might mean something else to us stays Spark's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource as spark

from nightkeep.sql_text.rows.condition import Among, ColumnRef, Compare, Comparison, IsNull, Like, Not, Test, Value


def pushed_tests(
    filters: Sequence[spark.Filter], columns: pa.Schema
) -> tuple[tuple[Test, ...], tuple[spark.Filter, ...]]:
    """The tests of the filters that we evaluate as Spark does, and the other filters."""
    tests, others = list[Test](), list[spark.Filter]()
    for each in filters:
        test = _test(each, columns)
        if test is None:
            others.append(each)
        else:
            tests.append(test)
    return tuple(tests), tuple(others)


def _test(pushed: spark.Filter, columns: pa.Schema) -> Test | None:
    if isinstance(pushed, spark.Not):
        inner = _test(pushed.child, columns)
        return None if inner is None else Not(inner)
    build = _TESTS.get(type(pushed))
    column = _column(getattr(pushed, "attribute", ()), columns)
    return None if build is None or column is None else build(column, getattr(pushed, "value", None))


def _column(path: Sequence[str], columns: pa.Schema) -> ColumnRef | None:
    """The column of this exact path; None for one whose values Spark compares otherwise."""
    fields = list(columns)
    kind: pa.DataType | None = None
    for name in path:
        kind = next((field.type for field in fields if field.name == name), None)
        fields = list(kind) if isinstance(kind, pa.StructType) else []
    return None if kind is None or not _is_alike(kind) else ColumnRef(tuple(path), kind)


def _is_alike(kind: pa.DataType) -> bool:
    numbers = pa.types.is_signed_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
    times = pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us")
    return numbers or times or pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)


def _value(column: ColumnRef, value: Any) -> Value | None:
    """The literal as the column's type; None if the column cannot hold it as it is."""
    if isinstance(value, datetime) and (value.tzinfo is None) != (getattr(column.type, "tz", None) is None):
        return None
    try:
        held: Any = pa.scalar(value, column.type).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    same = held == value or (isinstance(value, float) and math.isnan(value))
    return Value(held, column.type) if same and isinstance(value, Decimal) is isinstance(held, Decimal) else None


def _compare(order: Comparison, *, swapped: bool = False) -> Callable[[ColumnRef, Any], Test | None]:
    def build(column: ColumnRef, value: Any) -> Test | None:
        literal = Value(None, column.type) if value is None else _value(column, value)
        if literal is None:
            return None
        return Compare(order, literal, column) if swapped else Compare(order, column, literal)

    return build


def _among(column: ColumnRef, values: Any) -> Test | None:
    literals = [None if value is None else _value(column, value) for value in values]
    known = [literal.value for literal in literals if literal is not None]
    if not known or len(known) < len(literals):
        return None
    return Among((column,), pa.table({"0": pa.array(known, column.type)}))


def _like(before: str, after: str) -> Callable[[ColumnRef, Any], Test | None]:
    def build(column: ColumnRef, value: Any) -> Test | None:
        plain = isinstance(value, str) and not {"%", "_", "\\"} & set(value) and pa.types.is_string(column.type)
        return Like(column, f"{before}{value}{after}") if plain else None

    return build


_TESTS: Final[Mapping[type, Callable[[ColumnRef, Any], Test | None]]] = {
    spark.EqualTo: _compare(Comparison.EQUAL),
    spark.EqualNullSafe: _compare(Comparison.SAME),
    spark.LessThan: _compare(Comparison.LESS),
    spark.LessThanOrEqual: _compare(Comparison.LESS_OR_EQUAL),
    spark.GreaterThan: _compare(Comparison.LESS, swapped=True),
    spark.GreaterThanOrEqual: _compare(Comparison.LESS_OR_EQUAL, swapped=True),
    spark.In: _among,
    spark.IsNull: lambda column, _: IsNull(column),
    spark.IsNotNull: lambda column, _: Not(IsNull(column)),
    spark.StringStartsWith: _like("", "%"),
    spark.StringEndsWith: _like("%", ""),
    spark.StringContains: _like("%", "%"),
}
