"""A test and rows -> the rows for which it is true, by Arrow compute. A rewrite finds the rows to delete with it."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import Datum
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


def is_true(test: Test, rows: pa.Table) -> Datum:
    """A boolean for each of `rows`, never null: false where the test is unknown. `rows` have the test's columns."""
    truth = _truth(test, rows)
    return pc.fill_null(truth, False)  # noqa: FBT003


def _truth(test: Test, rows: pa.Table) -> Datum:
    match test:
        case And(left, right):
            return pc.and_kleene(_truth(left, rows), _truth(right, rows))
        case Or(left, right):
            return pc.or_kleene(_truth(left, rows), _truth(right, rows))
        case Not(inner):
            return pc.invert(_truth(inner, rows))
        case IsNull(column):
            return pc.is_null(_column(column, rows))
        case Like(column, pattern):
            return pc.match_substring_regex(_column(column, rows), pattern=_regex(pattern))
        case Among(columns, keys):
            return _among(columns, keys, rows)
        case Compare():
            return _compared(test, rows)


def _compared(test: Compare, rows: pa.Table) -> Datum:
    left, right = (_operand(side, rows) for side in (test.left, test.right))
    if test.order is Comparison.SAME:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, pc.fill_null(_equal(left, right), False))  # noqa: FBT003
    if test.order is Comparison.EQUAL:
        return _equal(left, right)
    if test.order is Comparison.DIFFERENT:
        return pc.invert(_equal(left, right))
    return _less(left, right) if test.order is Comparison.LESS else pc.invert(_less(right, left))


def _among(columns: tuple[ColumnRef, ...], keys: pa.Table, rows: pa.Table) -> Datum:
    """Whether each row has one of the keys.

    Column by column, both sides become numbers that are equal if all columns so far are equal. A row without a key
    becomes null."""
    held, wanted = _unsigned(_operand(columns[0], rows)), _unsigned(keys.column(0))
    for place, column in enumerate(columns[1:], 1):
        more, other = _unsigned(_operand(column, rows)), _unsigned(keys.column(place))
        step, firsts, seconds = len(keys), pc.unique(wanted), pc.unique(other)
        held, wanted = (
            pc.add(pc.multiply(_number(one, firsts), pa.scalar(step, pa.int64())), _number(two, seconds))
            for one, two in ((held, more), (wanted, other))
        )
    members = pc.is_in(held, value_set=wanted)
    return members if len(columns) > 1 else pc.if_else(pc.is_null(held), pa.scalar(None, pa.bool_()), members)


def _number(values: Datum, known: Datum) -> Datum:
    return pc.index_in(values, value_set=known).cast(pa.int64())


def _unsigned(values: Datum) -> Datum:
    """The values with -0.0 turned into 0.0: a lookup compares bytes, which differ for the two zeros."""
    return pc.add(values, pa.scalar(0.0, values.type)) if _floats(values) else values


def _equal(left: Datum, right: Datum) -> Datum:
    same = pc.equal(left, right)
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _floats(left) else same


def _less(left: Datum, right: Datum) -> Datum:
    less = pc.less(left, right)
    # In Arrow every comparison with NaN is false.
    return pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right))) if _floats(left) else less


def _floats(values: Datum) -> bool:
    return bool(pa.types.is_floating(values.type))


def _operand(side: ColumnRef | Value, rows: pa.Table) -> Datum:
    if isinstance(side, Value):
        return pa.scalar(side.value, side.type)
    held = _column(side, rows)
    return held if held.type == side.type else held.cast(side.type)


def _column(column: ColumnRef, rows: pa.Table) -> Datum:
    top = rows.column(column.path[0]).combine_chunks()
    return pc.struct_field(top, list(column.path[1:])) if column.path[1:] else top


def _regex(pattern: str) -> str:
    """The regular expression of a LIKE pattern. With (?s), _ and % also match line ends."""
    return "(?s)^" + "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern) + r"\z"
