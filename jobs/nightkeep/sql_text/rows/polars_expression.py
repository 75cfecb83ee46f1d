"""Assignments and rows -> the rows with their columns set, by Polars. The gate computes the expected rows with it.

Every expression is evaluated for every row, as a value and a flag that marks where there is none. Whole numbers and
decimals are 128-bit integers, a decimal without its point; what is beyond the type is found by comparing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, cast

import polars as pl
import pyarrow as pa

from nightkeep.sql_text.rows.condition import ColumnRef, Value
from nightkeep.sql_text.rows.expression import (
    Arithmetic,
    Assignment,
    Chosen,
    Concatenated,
    Converted,
    Expression,
    FirstKnown,
    Negated,
    Operator,
    UnfitValueError,
)
from nightkeep.sql_text.rows.expression_types import digits
from nightkeep.sql_text.rows.parse_assignments import read_columns
from nightkeep.sql_text.rows.polars_condition import polars_type, truth

_WIDE: Final = pl.Int128()
_NEVER: Final = pl.lit(value=False)


@dataclass(frozen=True, slots=True)
class _Computed:
    """Values, and where there are none: `unfit` is never null, and a value that is unfit is null."""

    value: pl.Expr
    unfit: pl.Expr = _NEVER

    def unless(self, unfit: pl.Expr) -> _Computed:
        bad = self.unfit | unfit.fill_null(value=False)
        return _Computed(pl.when(~bad).then(self.value), bad)


def expected_rows(found: Sequence[Assignment], rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with their columns set, in their order. All values are computed from the rows as they were.

    Raises UnfitValueError where Spark SQL has no value, or one that does not fit its column.
    """
    # Only what is read: Polars has no values of some other types. A column is needed for its number of rows.
    names = sorted(read_columns(found)) or rows.schema.names[:1]
    frame = cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches([rows]).select(names)))
    columns = {name: rows.column(name) for name in rows.schema.names}
    for each in found:
        computed = _computed(each.value)
        both = frame.select(value=_broadcast(computed.value), unfit=_broadcast(computed.unfit))
        if both["unfit"].any():
            unfit = both["unfit"].sum()
            raise UnfitValueError(f"the new value of {each.column}: {unfit} rows without a value that fits")
        columns[each.column] = _stored(both["value"], rows.schema.field(each.column).type)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)


def _broadcast(value: pl.Expr) -> pl.Expr:
    """One value for each row, of a literal as well."""
    return pl.when(pl.int_range(pl.len()) >= 0).then(value)


def _stored(values: pl.Series, kind: pa.DataType) -> pa.Array[pa.Scalar[pa.DataType]]:
    if pa.types.is_decimal(kind):
        whole = values.cast(pl.Decimal(38, 0)).to_arrow().cast(pa.decimal128(38, 0))
        digits = pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(whole), whole.buffers())
        return digits.cast(kind)
    return values.cast(polars_type(kind)).to_arrow().cast(kind)


def _computed(value: Expression) -> _Computed:
    match value:
        case ColumnRef(path, kind):
            return _Computed(_wide(pl.col(path[0]), kind))
        case Value(literal, kind):
            return _Computed(_literal(literal, kind))
        case Chosen():
            return _chosen(value)
        case FirstKnown(values):
            return reduce(_or_else, map(_computed, values))
        case _:
            return _operation(value)


def _operation(value: Arithmetic | Negated | Converted | Concatenated) -> _Computed:
    match value:
        case Arithmetic():
            return _arithmetic(value)
        case Negated(inner, kind):
            held = _computed(inner)
            negative = -held.value if pa.types.is_floating(kind) else _lit(0) - held.value
            return _within(_Computed(negative, held.unfit), kind)
        case Converted(inner, kind):
            return _converted(_computed(inner), inner.type, kind)
        case Concatenated(values):
            parts = list(map(_computed, values))
            text = pl.concat_str([part.value for part in parts], ignore_nulls=False)
            return _Computed(text, pl.any_horizontal(*(part.unfit for part in parts)))


def _wide(held: pl.Expr, kind: pa.DataType) -> pl.Expr:
    if pa.types.is_decimal(kind):
        return held.to_physical().cast(_WIDE)
    return held.cast(_WIDE) if pa.types.is_integer(kind) else held


def _literal(literal: object, kind: pa.DataType) -> pl.Expr:
    typed = cast(pl.Series, pl.from_arrow(pa.array([literal], kind)))
    if pa.types.is_decimal(kind):
        typed = typed.to_physical()
    is_whole = pa.types.is_decimal(kind) or pa.types.is_integer(kind)
    return pl.lit(typed[0], dtype=_WIDE if is_whole else polars_type(kind))


def _arithmetic(value: Arithmetic) -> _Computed:
    left, right = _computed(value.left), _computed(value.right)
    unfit = left.unfit | right.unfit
    if value.operator is Operator.OVER:
        divides = left.value.is_not_null() & (right.value == 0)
        return _Computed(left.value / right.value, unfit).unless(divides)
    if value.operator is Operator.TIMES:
        return _within(_Computed(left.value * right.value, unfit), value.type)
    one, other = left.value, right.value
    if pa.types.is_decimal(value.type):
        _, scale = digits(value.type)
        one, other = (
            side * _lit(10 ** (scale - digits(kind)[1]))
            for side, kind in ((one, value.left.type), (other, value.right.type))
        )
    return _within(_Computed(one + other if value.operator is Operator.PLUS else one - other, unfit), value.type)


def _within(held: _Computed, kind: pa.DataType) -> _Computed:
    """Unfit where a whole number, or a decimal's digits, are beyond the type."""
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return held.unless((held.value > _lit(most)) | (held.value < _lit(-most)))
    if pa.types.is_integer(kind):
        end = 1 << (kind.bit_width - 1)
        return held.unless((held.value >= _lit(end)) | (held.value < _lit(-end)))
    return held


def _lit(number: int) -> pl.Expr:
    return pl.lit(number, dtype=_WIDE)


def _converted(held: _Computed, was: pa.DataType, kind: pa.DataType) -> _Computed:
    if pa.types.is_string(kind):
        return _Computed(held.value.cast(pl.String), held.unfit)
    if pa.types.is_floating(kind):
        # 128 bits hold every 64-bit integer, so the number is rounded once.
        return _Computed(
            held.value.cast(pl.Int64 if pa.types.is_integer(was) else pl.Float64).cast(polars_type(kind)), held.unfit
        )
    if not pa.types.is_decimal(kind):
        return _within(held, kind)
    more = kind.scale - (was.scale if pa.types.is_decimal(was) else 0)
    # What would not fit after more digits does not fit before either.
    room = _within(held, pa.decimal128(38 - max(more, 0), 0))
    scaled = room.value * _lit(10**more) if more >= 0 else _half_up(room.value, 10**-more)
    return _within(_Computed(scaled, room.unfit), kind)


def _half_up(digits: pl.Expr, unit: int) -> pl.Expr:
    """Divided by `unit`, rounded away from zero at one half. Division of positive numbers: its sign is not at issue."""
    size = pl.when(digits < 0).then(_lit(0) - digits).otherwise(digits)
    whole, rest = size // _lit(unit), size % _lit(unit)
    rounded = whole + (rest * _lit(2) >= _lit(unit)).cast(_WIDE)
    return pl.when(digits < 0).then(_lit(0) - rounded).otherwise(rounded)


def _chosen(value: Chosen) -> _Computed:
    result = _computed(value.otherwise)
    for test, branch in reversed(value.branches):
        mine, taken = truth(test).fill_null(value=False), _computed(branch)
        result = _Computed(
            pl.when(mine).then(taken.value).otherwise(result.value),
            pl.when(mine).then(taken.unfit).otherwise(result.unfit),
        )
    return result


def _or_else(first: _Computed, second: _Computed) -> _Computed:
    missing = first.value.is_null() & ~first.unfit
    value = pl.when(missing).then(second.value).otherwise(first.value)
    return _Computed(value, first.unfit | (missing & second.unfit))
