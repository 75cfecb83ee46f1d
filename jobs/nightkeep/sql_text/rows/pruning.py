"""A test and bounds of columns -> where the test can be true. Reads no rows, and never leaves out a matching one.

A part is anything with bounds: a partition, a file, a row group. For each part two things are tracked, whether the test
can be true and whether it can be false of any row, so that NOT is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.spans import ColumnSpans
from nightkeep.model.arrow_types import Array, Datum
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

Flags = npt.NDArray[np.bool_]
Path: TypeAlias = tuple[str, ...]
FEW_KEYS: Final = 1_000
"""Keys of an IN list that are compared with the bounds of each part; of longer lists, the least and the greatest."""


def paths_of(test: Test) -> frozenset[Path]:
    """The columns, and fields of structs, whose bounds matter to the test."""
    match test:
        case Compare(_, left, right):
            return frozenset(side.path for side in (left, right) if isinstance(side, ColumnRef))
        case Among(columns, _):
            return frozenset(column.path for column in columns)
        case IsNull(column) | Like(column, _):
            return frozenset({column.path})
        case Not(inner):
            return paths_of(inner)
        case And(left, right) | Or(left, right):
            return paths_of(left) | paths_of(right)


def can_be_true(test: Test, spans: Mapping[Path, ColumnSpans], parts: int) -> Flags:
    """For each of `parts` parts, False only if no row of it passes the test. Columns without spans are unknown."""
    return _possible(test, spans, parts)[0]


def wanted_values(test: Test) -> Mapping[str, Sequence[object]]:
    """Columns that the test requires to have one of some values, and those values."""
    match test:
        case And(left, right):
            return {**wanted_values(right), **wanted_values(left)}
        case Compare(Comparison.EQUAL | Comparison.SAME, ColumnRef((name,)), Value(value)) if value is not None:
            return {name: [value]}
        case Compare(Comparison.EQUAL | Comparison.SAME, Value(value), ColumnRef((name,))) if value is not None:
            return {name: [value]}
        case Among((ColumnRef((name,)),), keys):
            return {name: keys.column(0).to_pylist()}
    return {}


def _possible(test: Test, spans: Mapping[Path, ColumnSpans], parts: int) -> tuple[Flags, Flags]:
    """Whether the test can be true, and whether it can be false."""
    match test:
        case And(left, right):
            (true, false), (also_true, also_false) = (_possible(side, spans, parts) for side in (left, right))
            return true & also_true, false | also_false
        case Or(left, right):
            (true, false), (also_true, also_false) = (_possible(side, spans, parts) for side in (left, right))
            return true | also_true, false & also_false
        case Not(inner):
            true, false = _possible(inner, spans, parts)
            return false, true
        case IsNull(column):
            return _null(column, spans, parts)
        case Like(column, pattern):
            return _like(column, pattern, spans, parts)
        case Among(columns, keys):
            return _among(columns, keys, spans, parts)
        case Compare():
            return _compared(test, spans, parts)


def _unknown(parts: int) -> tuple[Flags, Flags]:
    return np.ones(parts, np.bool_), np.ones(parts, np.bool_)


def _null(column: ColumnRef, spans: Mapping[Path, ColumnSpans], parts: int) -> tuple[Flags, Flags]:
    known = spans.get(column.path)
    if known is None:
        return _unknown(parts)
    return _some(known.nulls), _unless_false(pc.less(known.nulls, known.rows))


def _compared(test: Compare, spans: Mapping[Path, ColumnSpans], parts: int) -> tuple[Flags, Flags]:
    mirrored = not isinstance(test.left, ColumnRef)
    column, literal = (test.right, test.left) if mirrored else (test.left, test.right)
    if not isinstance(column, ColumnRef) or not isinstance(literal, Value):
        return _unknown(parts)
    if literal.value is None:
        # A comparison with NULL is unknown, except by <=>.
        found = _null(column, spans, parts)
        return found if test.order is Comparison.SAME else (np.zeros(parts, np.bool_), np.zeros(parts, np.bool_))
    known = _Known.of(column, spans)
    if known is None or (isinstance(literal.value, float) and literal.value != literal.value):
        return _unknown(parts)
    value = pa.scalar(literal.value, literal.type)
    true, false = _ordered(test.order, known, value, mirrored=mirrored)
    if test.order is Comparison.SAME:
        return true & known.has_values, false | known.has_nulls
    return true & known.has_values, false & known.has_values


def _ordered(order: Comparison, known: _Known, value: Datum, *, mirrored: bool) -> tuple[Flags, Flags]:
    """Of rows that have a value."""
    match order:
        case Comparison.EQUAL | Comparison.SAME:
            return known.can_equal(value), ~known.is_only(value)
        case Comparison.DIFFERENT:
            return ~known.is_only(value), known.can_equal(value)
        case Comparison.LESS if mirrored:
            return known.can_exceed(value), known.can_reach_down(value)
        case Comparison.LESS:
            return known.can_be_below(value), known.can_reach_up(value)
        case Comparison.LESS_OR_EQUAL if mirrored:
            return known.can_reach_up(value), known.can_be_below(value)
        case _:
            return known.can_reach_down(value), known.can_exceed(value)


@dataclass(frozen=True, slots=True)
class _Known:
    """Bounds of a column in the type as which it is compared. `open_ended`: NaN, which no bound includes, may be there.

    Comparisons with an unknown bound are possible.
    """

    lows: Array
    highs: Array
    has_values: Flags
    has_nulls: Flags
    open_ended: bool

    @classmethod
    def of(cls, column: ColumnRef, spans: Mapping[Path, ColumnSpans]) -> _Known | None:
        held = spans.get(column.path)
        if held is None:
            return None
        try:
            lows, highs = held.lows.cast(column.type), held.highs.cast(column.type)
        except pa.ArrowException:
            return None
        floats = pa.types.is_floating(column.type)
        if floats:
            lows, highs = (pc.if_else(pc.is_nan(each), pa.scalar(None, column.type), each) for each in (lows, highs))
        has_values = _unless_false(pc.less(held.nulls, held.rows))
        return cls(lows, highs, has_values, _some(held.nulls), floats)

    def can_equal(self, value: Datum) -> Flags:
        return self.can_reach_down(value) & _unless_false(pc.greater_equal(self.highs, value))

    def can_be_below(self, value: Datum) -> Flags:
        return _unless_false(pc.less(self.lows, value))

    def can_reach_down(self, value: Datum) -> Flags:
        """Whether a value can be less than this one or equal to it."""
        return _unless_false(pc.less_equal(self.lows, value))

    def can_exceed(self, value: Datum) -> Flags:
        return _unless_false(pc.greater(self.highs, value)) | self.open_ended

    def can_reach_up(self, value: Datum) -> Flags:
        """Whether a value can be greater than this one or equal to it."""
        return _unless_false(pc.greater_equal(self.highs, value)) | self.open_ended

    def is_only(self, value: Datum) -> Flags:
        """Whether every value that is not null equals this one."""
        both: Datum = pc.and_(pc.equal(self.lows, value), pc.equal(self.highs, value))
        if self.open_ended:
            return np.zeros(len(self.lows), np.bool_)
        return np.asarray(pc.fill_null(both, False))  # noqa: FBT003


def _among(
    columns: tuple[ColumnRef, ...], keys: pa.Table, spans: Mapping[Path, ColumnSpans], parts: int
) -> tuple[Flags, Flags]:
    """Column by column: a part can hold a key only if each of its columns can hold one of the key's values."""
    true = np.ones(parts, np.bool_)
    for place, column in enumerate(columns):
        known = _Known.of(column, spans)
        if known is not None:
            true &= known.has_values & _can_hold_one(known, keys.column(place))
    return true, np.ones(parts, np.bool_)


def _can_hold_one(known: _Known, wanted: Datum) -> Flags:
    values = pc.unique(wanted)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return np.ones(len(known.lows), np.bool_)
    if not len(values):
        return np.zeros(len(known.lows), np.bool_)
    if len(values) > FEW_KEYS:
        ends = pc.min_max(values)
        return known.can_reach_up(ends["min"]) & known.can_reach_down(ends["max"])
    holds = np.zeros(len(known.lows), np.bool_)
    for value in values:
        holds |= known.can_equal(value)
    return holds


def _like(column: ColumnRef, pattern: str, spans: Mapping[Path, ColumnSpans], parts: int) -> tuple[Flags, Flags]:
    """By the text before the first wildcard. The end of its range is the text followed by the last character."""
    held = spans.get(column.path)
    prefix = pattern.replace("_", "%").partition("%")[0]
    if held is None:
        return _unknown(parts)
    has_values = _unless_false(pc.less(held.nulls, held.rows))
    if not prefix:
        return has_values, has_values
    text = pa.scalar(prefix, held.lows.type)
    starts = pc.starts_with(held.lows, pattern=prefix)
    below = _unless_false(pc.or_kleene(pc.less_equal(held.lows, text), starts))
    above = _unless_false(pc.greater_equal(held.highs, text))
    return below & above & has_values, has_values


def _some(counts: Array) -> Flags:
    """Whether a count is more than none, or is not known."""
    # Not made when the module is imported: Arrow imports pandas for its first value, which takes half a second.
    return _unless_false(pc.greater(counts, pa.scalar(0, pa.int64())))


def _unless_false(flags: Datum) -> Flags:
    """The flags, with true for null."""
    return np.asarray(pc.fill_null(flags, True))  # noqa: FBT003
