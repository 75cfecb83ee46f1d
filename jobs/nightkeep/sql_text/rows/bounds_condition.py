"""A test and the bounds of files -> the files that may hold a row for which it is true. Others need not be opened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import Array, Column
from nightkeep.sql_text.rows.condition import Among, And, ColumnRef, Compare, Comparison, Or, Test, Value

Spans: TypeAlias = Callable[[ColumnRef], tuple[Array, Array] | None]
"""The lowest and highest value of a column in each file, in the type of the comparison; null where unknown.

None if bounds of the column cannot rule out a file."""
Flags: TypeAlias = npt.NDArray[np.bool_] | np.bool_


def may_hold(test: Test, files: int, spans: Spans) -> list[bool]:
    """For each of so many files, False if its bounds rule out a match, else True."""
    return [bool(one) for one in np.ones(files, np.bool_) & _may(test, spans)] if files else []


def _may(test: Test, spans: Spans) -> Flags:
    match test:
        case And(left, right):
            return _may(left, spans) & _may(right, spans)
        case Or(left, right):
            return _may(left, spans) | _may(right, spans)
        case Compare():
            return _bounded(test, spans)
        case Among(columns, keys):
            ranges = zip(map(spans, columns), keys.columns, strict=True)
            return reduce(and_, (_holds_one(span, column_keys) for span, column_keys in ranges))
    return np.True_


def _holds_one(span: tuple[Array, Array] | None, keys: Column) -> Flags:
    """For each file, whether any of the keys lies within its bounds. Unknown bounds count as a match."""
    if span is None:
        return np.True_
    lows, highs, numbers = (_numbers(values) for values in (*span, keys))
    candidates = sorted({key for key in numbers.to_pylist() if key is not None})
    places = [None if low is None else bisect_left(candidates, low) for low in lows.to_pylist()]
    nearest = [candidates[at] if at is not None and at < len(candidates) else None for at in places]
    beyond = np.array([at == len(candidates) for at in places], np.bool_)
    within: Array = pc.less_equal(pa.array(nearest, numbers.type), highs)
    return ~beyond & _unless_false(within)


def _unless_false(flags: Array) -> npt.NDArray[np.bool_]:
    """The flags, with true for null."""
    return np.asarray(flags.fill_null(True))  # noqa: FBT003


def _numbers(values: Column) -> Column:
    """Dates and times as integers: bounds may be outside Python's calendar."""
    return values.cast(f"int{values.type.bit_width}") if pa.types.is_temporal(values.type) else values


def _bounded(test: Compare, spans: Spans) -> Flags:
    column = test.left if isinstance(test.left, ColumnRef) else test.right
    value = test.right if isinstance(test.left, ColumnRef) else test.left
    if not isinstance(column, ColumnRef) or not isinstance(value, Value) or value.value is None:
        return np.True_
    span = spans(column)
    if span is None:
        return np.True_
    lows, highs = span
    literal = pa.scalar(value.value, value.type)
    above: Array = pc.less_equal(lows, literal)
    below: Array = pc.greater_equal(highs, literal)
    needs = {Comparison.EQUAL: (above, below), Comparison.SAME: (above, below)}
    ordered = (above,) if column is test.left else (below,)
    checks = needs.get(test.order, () if test.order is Comparison.DIFFERENT else ordered)
    return reduce(and_, map(_unless_false, checks), np.ones(len(lows), np.bool_))
