"""Assignments and rows -> the rows with their columns set, by Arrow compute. A rewrite writes the new rows with it.

An expression is evaluated only for the rows that need its value: those of a CASE whose test chose it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import Array, Datum
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.condition import ColumnRef, Test, Value
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


def with_values(found: Sequence[Assignment], rows: pa.Table) -> pa.Table:
    """The rows with their columns set, in their order. All values are computed from the rows as they were.

    Raises UnfitValueError where Spark SQL has no value, or one that does not fit its column.
    """
    values = {each.column: _assigned(each, rows) for each in found}
    for name, value in values.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, value)
    return rows


def _assigned(found: Assignment, rows: pa.Table) -> Array:
    try:
        return _value(found.value, rows)
    except (pa.ArrowInvalid, OverflowError) as failure:
        # Other messages of Arrow may quote a value of a row.
        why = str(failure) if str(failure) in _WITHOUT_VALUES else "a row has none that fits"
        raise UnfitValueError(f"the new value of {found.column}: {why}") from failure


def _value(value: Expression, rows: pa.Table) -> Array:
    """One value for each row, of the expression's type."""
    match value:
        case ColumnRef(path):
            return rows.column(path[0]).combine_chunks()
        case Value(literal, kind):
            return _repeated(pa.scalar(literal, kind), rows.num_rows)
        case Chosen():
            return _chosen(value, rows)
        case FirstKnown():
            return _first_known(value, rows)
        case _:
            return _operation(value, rows)


def _operation(value: Arithmetic | Negated | Converted | Concatenated, rows: pa.Table) -> Array:
    match value:
        case Arithmetic():
            return _ARITHMETIC[value.operator](*(_value(side, rows) for side in (value.left, value.right)))
        case Negated(inner):
            negative: Array = pc.negate_checked(_value(inner, rows))
            return negative
        case Converted(inner, kind):
            return _converted(_value(inner, rows), kind)
        case Concatenated(values):
            parts: list[Datum] = [_value(each, rows) for each in values]
            joined: Array = pc.binary_join_element_wise(*parts, "", null_handling="emit_null")
            return joined


def _repeated(value: Datum, rows: int) -> Array:
    repeated: Array = pa.repeat(value, rows)
    return repeated


def _nulls(rows: int, kind: Any) -> Array:
    nulls: Array = pa.nulls(rows, kind)
    return nulls


def _converted(held: Array, kind: pa.DataType) -> Array:
    if pa.types.is_floating(kind):
        # From 64 bits a number is rounded, as by every engine.
        return held.cast(kind, safe=False)
    if pa.types.is_decimal(held.type) and pa.types.is_decimal(kind) and kind.scale < held.type.scale:
        held = pc.round(held, ndigits=kind.scale, round_mode="half_towards_infinity")
    if pa.types.is_integer(held.type) and pa.types.is_decimal(kind):
        # Arrow asks for room for all digits of the type, and not only of the values.
        return held.cast(pa.decimal128(38, 0)).cast(pa.decimal256(76, kind.scale)).cast(kind)
    return held.cast(kind)


def _chosen(value: Chosen, rows: pa.Table) -> Array:
    left, chosen = np.ones(rows.num_rows, np.bool_), _nulls(rows.num_rows, value.type)
    for test, branch in value.branches:
        mine = left & _true(test, rows)
        chosen = _filled(chosen, mine, branch, rows)
        left &= ~mine
    return _filled(chosen, left, value.otherwise, rows)


def _first_known(value: FirstKnown, rows: pa.Table) -> Array:
    known = _nulls(rows.num_rows, value.type)
    for each in value.values:
        known = _filled(known, np.asarray(known.is_null()), each, rows)
    return known


def _filled(held: Array, mask: npt.NDArray[np.bool_], value: Expression, rows: pa.Table) -> Array:
    """`held` with the expression's values in the rows of `mask`. It is evaluated for those rows alone."""
    if not mask.any():
        return held
    chosen = pa.array(mask)
    filled: Array = pc.replace_with_mask(held, chosen, _value(value, rows.filter(chosen)))
    return filled


def _true(test: Test, rows: pa.Table) -> npt.NDArray[np.bool_]:
    return np.asarray(is_true(test, rows))


_WITHOUT_VALUES: Final = ("overflow", "divide by zero")
_ARITHMETIC: Final[Mapping[Operator, Callable[[Datum, Datum], Array]]] = {
    Operator.PLUS: pc.add_checked,
    Operator.MINUS: pc.subtract_checked,
    Operator.TIMES: pc.multiply_checked,
    Operator.OVER: pc.divide_checked,
}
