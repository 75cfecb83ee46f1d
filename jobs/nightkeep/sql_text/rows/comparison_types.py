"""Literals and columns -> the type as which they are compared. Both evaluations use the same type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final

import pyarrow as pa

from nightkeep.sql_text.rows.condition import Value

_DIGITS: Final = 38


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def shared(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type as which two columns can be compared exactly; None if there is none."""
    for kind, wide in ((pa.types.is_integer, pa.int64()), (pa.types.is_floating, pa.float64())):
        if kind(left) and kind(right):
            return wide
    plain = not pa.types.is_nested(left) and not pa.types.is_null(left)
    return left if left == right and plain else None


def typed(literal: object, kind: pa.DataType) -> Value:
    """The literal as a value of the type as which it is compared with the column. Raises ValueError."""
    if pa.types.is_nested(kind):
        raise ValueError("nested values do not compare")
    if literal is None:
        return Value(None, kind)
    if isinstance(literal, Decimal):
        return _number(literal, kind)
    for is_kind, convert in _CONVERT:
        if is_kind(kind):
            return Value(convert(literal, kind), kind)
    raise ValueError(f"{type(literal).__name__} {literal!r}")


def _number(literal: Decimal, kind: pa.DataType) -> Value:
    """A number as a value. If a fraction is involved, integers are compared as decimals, so that nothing is rounded."""
    if pa.types.is_floating(kind):
        return Value(float(literal), pa.float64())
    exponent = literal.normalize().as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError("it is no finite number")
    scale = max(0, -exponent)
    if pa.types.is_integer(kind) and scale == 0:
        if not -(1 << 63) <= literal < 1 << 63:
            raise ValueError("it does not fit 64 bits")
        return Value(int(literal), pa.int64())
    if pa.types.is_integer(kind):
        return _exact(literal, 19, scale)
    if pa.types.is_decimal(kind):
        return _exact(literal, kind.precision - kind.scale, max(scale, kind.scale))
    raise ValueError("it is a number")


def _exact(literal: Decimal, whole: int, scale: int) -> Value:
    digits = max(whole, literal.adjusted() + 1)
    if digits + scale > _DIGITS:
        raise ValueError(f"more than {_DIGITS} digits")
    return Value(literal, pa.decimal128(_DIGITS, scale))


def _as_text(literal: object, kind: pa.DataType) -> object:
    if not isinstance(literal, str):
        raise ValueError("expected a text")
    return literal


def _as_flag(literal: object, kind: pa.DataType) -> object:
    if not isinstance(literal, bool):
        raise ValueError("expected true or false")
    return literal


def _as_bytes(literal: object, kind: pa.DataType) -> object:
    if not isinstance(literal, bytes):
        raise ValueError("expected X'..'")
    return literal


def _as_date(literal: object, kind: pa.DataType) -> object:
    value = date.fromisoformat(literal) if isinstance(literal, str) else literal
    if not isinstance(value, date) or isinstance(value, datetime):
        raise ValueError("expected DATE '..'")
    return value


def _as_moment(literal: object, kind: pa.DataType) -> object:
    """A time with a zone (by default UTC) if the column has one, else without."""
    value = datetime.fromisoformat(literal) if isinstance(literal, str) else literal
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError("expected TIMESTAMP '..'")
    if pa.types.is_timestamp(kind) and kind.tz is None:
        if value.tzinfo is not None:
            raise ValueError("expected one without a zone")
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_CONVERT: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], object]], ...]] = (
    (is_text, _as_text),
    (pa.types.is_boolean, _as_flag),
    (pa.types.is_binary, _as_bytes),
    (pa.types.is_date, _as_date),
    (pa.types.is_timestamp, _as_moment),
)
