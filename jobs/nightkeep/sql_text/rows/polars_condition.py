"""A test and rows -> the rows for which it is not true, by Polars. The gate computes the expected rows with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

import polars as pl
import pyarrow as pa

from nightkeep.sql_text.rows.condition import (
    Among,
    And,
    ColumnRef,
    Compare,
    Comparison,
    IsNull,
    Like,
    Not,
    Or,
    Test,
    Value,
)


def staying(test: Test, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which the test is not true: false, or unknown."""
    return rows.filter((~_is_true(test, rows)).to_arrow())


def matching(test: Test, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which the test is true."""
    return rows.filter(_is_true(test, rows).to_arrow())


def _is_true(test: Test, rows: pa.RecordBatch) -> pl.Series:
    names = list(dict.fromkeys(_names(test)))
    frame = cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches([rows]).select(names)))
    return frame.select(matches=truth(test).fill_null(value=False))["matches"]


def _names(test: Test) -> list[str]:
    match test:
        case And(left, right) | Or(left, right):
            return _names(left) + _names(right)
        case Not(inner):
            return _names(inner)
        case Compare(_, left, right):
            return [side.path[0] for side in (left, right) if isinstance(side, ColumnRef)]
        case Among(columns, _):
            return [column.path[0] for column in columns]
        case IsNull(column) | Like(column, _):
            return [column.path[0]]


def truth(test: Test) -> pl.Expr:
    """Whether the test is true of each row; null where it is unknown."""
    match test:
        case And(left, right):
            return truth(left) & truth(right)
        case Or(left, right):
            return truth(left) | truth(right)
        case Not(inner):
            return ~truth(inner)
        case IsNull(column):
            return _column(column).is_null()
        case Like(column, pattern):
            return _column(column).str.contains(_regex(pattern))
        case Among(columns, keys):
            return _among(columns, keys)
        case Compare(order, left, right):
            return _ORDERS[order](_operand(left), _operand(right))


def _among(columns: tuple[ColumnRef, ...], keys: pa.Table) -> pl.Expr:
    known = cast(pl.DataFrame, pl.from_arrow(keys))
    if len(columns) == 1:
        return _operand(columns[0]).is_in(known.to_series().implode())
    names = known.columns
    values = pl.struct(_operand(column).alias(name) for column, name in zip(columns, names, strict=True))
    return values.is_in(known.to_struct().implode())


# Polars, like Spark, has NaN equal to itself and above every number.
_ORDERS: Final[Mapping[Comparison, Callable[[pl.Expr, pl.Expr], pl.Expr]]] = {
    Comparison.EQUAL: lambda left, right: left == right,
    Comparison.DIFFERENT: lambda left, right: left != right,
    Comparison.LESS: lambda left, right: left < right,
    Comparison.LESS_OR_EQUAL: lambda left, right: left <= right,
    Comparison.SAME: lambda left, right: left.eq_missing(right),
}


def _operand(side: ColumnRef | Value) -> pl.Expr:
    kind = polars_type(side.type)
    return _column(side).cast(kind) if isinstance(side, ColumnRef) else pl.lit(side.value, dtype=kind)


def _column(column: ColumnRef) -> pl.Expr:
    column_expr = pl.col(column.path[0])
    for name in column.path[1:]:
        column_expr = column_expr.struct.field(name)
    return column_expr


def polars_type(kind: pa.DataType) -> pl.DataType:
    """The type that Polars has for values of an Arrow type."""
    empty = cast(pl.DataFrame, pl.from_arrow(pa.table({"type": pa.array([], kind)})))
    return empty.schema["type"]


def _regex(pattern: str) -> str:
    return "(?s)^(?:" + "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern) + r")\z"
