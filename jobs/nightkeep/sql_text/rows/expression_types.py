"""Types of expressions: the common type of several, as Spark SQL finds it, and conversions that it does by itself.

Only conversions that every engine does alike are known; for any other a ValueError names which types were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Context, Decimal
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from nightkeep.sql_text.rows.comparison_types import is_text, typed
from nightkeep.sql_text.rows.condition import Value
from nightkeep.sql_text.rows.expression import Chosen, Converted, Expression, FirstKnown, Operator

DIGITS: Final = 38
DOUBLE: Final = pa.float64()
_EXACT: Final = Context(prec=100)
_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
Is = Callable[[pa.DataType], bool]
_is_integer: Final[Is] = pa.types.is_signed_integer
_is_decimal: Final[Is] = pa.types.is_decimal
_is_floating: Final[Is] = pa.types.is_floating


def common(values: Sequence[Expression]) -> pa.DataType:
    """The type as which Spark has values that may stand for each other. Untyped nulls have any. Raises ValueError."""
    kinds = [value.type for value in values if not pa.types.is_null(value.type)]
    if not kinds:
        return pa.null()
    if any(map(_is_floating, kinds)) and any(_is_integer(kind) or _is_decimal(kind) for kind in kinds):
        return _with_floats(kinds)
    return reduce(_wider, kinds)


def digits(kind: pa.DataType) -> tuple[int, int]:
    """Precision and scale of an integer's or a decimal's type as a decimal."""
    return (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (_INTEGER_DIGITS[kind.bit_width], 0)


def is_number(kind: pa.DataType) -> bool:
    return _is_integer(kind) or _is_floating(kind) or _is_decimal(kind)


def as_decimal(value: Expression) -> Expression:
    """An integer as the decimal that Spark makes of it: of a literal one with its digits, else with all of its type."""
    if _is_decimal(value.type):
        return value
    if isinstance(value, Value) and isinstance(value.value, int):
        return converted(value, decimal_of(len(str(abs(value.value))), 0))
    return converted(value, decimal_of(*digits(value.type)))


def result(operator: Operator, left: Expression, right: Expression) -> pa.DataType:
    """The type of arithmetic on two numbers. Raises ValueError where Spark's is not known, or would round."""
    kind = common([left, right])
    if not _is_decimal(kind):
        return DOUBLE if operator is Operator.OVER else kind
    if operator is Operator.OVER:
        raise ValueError("/ of decimals")
    (one, scale), (other, other_scale) = (digits(as_decimal(side).type) for side in (left, right))
    if operator is Operator.TIMES:
        return decimal_of(one + other + 1, scale + other_scale)
    most = max(scale, other_scale)
    return decimal_of(max(one - scale, other - other_scale) + most + 1, most)


def decimal_of(precision: int, scale: int) -> pa.DataType:
    if precision > DIGITS:
        raise ValueError(f"more than {DIGITS} digits")
    return pa.decimal128(precision, scale)


def converted(value: Expression, kind: pa.DataType) -> Expression:
    """The expression as `kind`, of which every conversion is known. Raises ValueError."""
    if value.type == kind:
        return value
    if isinstance(value, Value):
        return _literal(value, kind)
    if isinstance(value, Chosen):
        branches = tuple((test, converted(each, kind)) for test, each in value.branches)
        return Chosen(branches, converted(value.otherwise, kind), kind)
    if isinstance(value, FirstKnown):
        return replace(value, values=tuple(converted(each, kind) for each in value.values), type=kind)
    if not any(has(value.type) and wanted(kind) for has, wanted in _CONVERSIONS):
        raise ValueError(f"{value.type}, which is not converted to {kind}")
    return Converted(value, kind)


def cast(value: Expression, kind: pa.DataType) -> Expression:
    """As `converted`, or the text of an integer."""
    if is_text(kind) and _is_integer(value.type):
        return Converted(value, kind)
    return converted(value, kind)


def _with_floats(kinds: Sequence[pa.DataType]) -> pa.DataType:
    # Whether Spark computes INT and FLOAT as FLOAT or as DOUBLE depends on its settings.
    if pa.float32() in kinds and any(map(_is_integer, kinds)):
        raise ValueError("FLOAT together with integers")
    return DOUBLE


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right:
        return left
    for is_kind in (_is_integer, _is_floating):
        if is_kind(left) and is_kind(right):
            return max(left, right, key=lambda kind: kind.bit_width)
    if all(_is_integer(kind) or _is_decimal(kind) for kind in (left, right)):
        (one, scale), (other, other_scale) = digits(left), digits(right)
        return decimal_of(max(one - scale, other - other_scale) + max(scale, other_scale), max(scale, other_scale))
    raise ValueError(f"{left} together with {right}")


def _literal(value: Value, kind: pa.DataType) -> Value:
    if value.value is None:
        return Value(None, kind)
    held = value.value
    if isinstance(held, bool) or not isinstance(held, int | float | Decimal):
        return _other_literal(value, kind)
    if _is_floating(kind):
        return Value(_floating(held, kind), kind)
    if isinstance(held, float):
        raise ValueError(f"{value.type}, which is not converted to {kind}")
    if pa.types.is_decimal(kind):
        rounded = Decimal(held).quantize(Decimal(1).scaleb(-kind.scale), rounding="ROUND_HALF_UP", context=_EXACT)
        return Value(_fitting(rounded, kind), kind)
    if _is_integer(kind) and isinstance(held, int):
        return Value(_fitting(held, kind), kind)
    raise ValueError(f"{held}, which is not converted to {kind}")


def _floating(held: float | Decimal, kind: pa.DataType) -> float:
    value = float(held)
    if kind == pa.float32() and not math.isnan(value):
        single = pa.scalar(value, DOUBLE).cast(kind, safe=False).as_py()
        if not isinstance(held, float) and single != value:
            raise ValueError(f"{held}, which FLOAT does not hold exactly")
        return float(single)
    return value


def _fitting(value: int | Decimal, kind: pa.DataType) -> object:
    try:
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowInvalid, OverflowError) as failure:
        raise ValueError(f"{value}, which does not fit {kind}") from failure


def _other_literal(value: Value, kind: pa.DataType) -> Value:
    """A time as a column's type, if it has it exactly. Other types do not change."""
    held = value.value
    if not (isinstance(held, datetime) and pa.types.is_timestamp(kind)):
        raise ValueError(f"{value.type}, which is not converted to {kind}")
    exact = typed(held, kind)
    return Value(_fitting_time(exact.value, kind), kind)


def _fitting_time(held: object, kind: Any) -> object:
    try:
        pa.scalar(held, pa.timestamp("us", kind.tz)).cast(kind)
    except pa.ArrowInvalid as failure:
        raise ValueError(f"{held}, which {kind} does not hold exactly") from failure
    return held


_CONVERSIONS: Final[tuple[tuple[Is, Is], ...]] = (
    (pa.types.is_null, lambda _: True),
    (_is_integer, lambda kind: _is_integer(kind) or _is_decimal(kind) or kind == DOUBLE),
    (_is_decimal, _is_decimal),
    (_is_floating, _is_floating),
)
