"""SQL literals -> Python values, comparable with the values of a column. Nothing is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from struct import pack, unpack
from typing import Any, Final, TypeAlias

from sqlglot import exp

from nightkeep.model.far_time import FarTime

Literal: TypeAlias = str | Decimal | bool | bytes | date | datetime | time | None
"""The Python value of a literal. Every number is a Decimal."""


def read_literal(node: object) -> Literal:
    """The value of a literal of the syntax tree. Raises ValueError for any other node and for DATE 'soon'."""
    read = _READ.get(type(node))
    if read is None:
        raise ValueError(f"expected a literal, found {type(node).__name__}")
    try:
        return read(node)
    except InvalidOperation as failure:
        raise ValueError(str(failure)) from failure


def alike(value: object, literal: Literal) -> tuple[object, object]:
    """A column's value and a literal as two objects that Python compares as Spark does. Neither may be None.

    The literal becomes a value of the column's type. NaN becomes larger than all other numbers. Raises ValueError if
    the literal cannot be a value of that type.
    """
    if (type(value), type(literal)) == (date, datetime):
        # The wider type decides, as in SQL: a date means its midnight.
        value = datetime.combine(value, time())  # type: ignore[arg-type]
    if isinstance(value, FarTime) and isinstance(literal, date):
        return value, literal
    convert = _CONVERT.get((type(value), type(literal)))
    if convert is None and type(value) is not type(literal):
        raise ValueError(f"expected a {type(value).__name__}, found a {type(literal).__name__}")
    try:
        return _ordered(value), _ordered(convert(literal) if convert else literal)
    except InvalidOperation as failure:
        raise ValueError(f"expected a number, found {literal!r}") from failure


def _written(node: exp.Literal) -> Literal:
    return str(node.this) if node.is_string else Decimal(node.this)


def _negative(node: exp.Neg) -> Literal:
    number = read_literal(node.this)
    if not isinstance(number, Decimal):
        raise ValueError(f"expected a number after -, found {number!r}")
    return -number


def _typed(node: exp.Cast) -> Literal:
    parse = _TYPED.get(node.to.this)
    if parse is None or not isinstance(node.this, exp.Literal) or not node.this.is_string:
        raise ValueError("expected DATE, TIME or TIMESTAMP and a text, found a cast")
    return parse(node.this.this)


def _sized(node: exp.TryCast) -> Literal:
    """A number with a type: 5L, 1.5F or a cast to a type that holds exactly that number."""
    value = read_literal(node.this)
    fits = _FITS.get(node.to.this)
    if isinstance(value, str) and node.to.this is exp.DType.DECIMAL:
        value = Decimal(value)
    if fits is None or not isinstance(value, Decimal) or not fits(value, node.to):
        raise ValueError(f"expected a number that {node.to.sql(dialect='spark')} holds, found {value!r}")
    return value


def _of_bits(bits: int) -> Callable[[Decimal, exp.DataType], bool]:
    # The parser sees -128Y as a minus and 128Y, so 128 is allowed.
    return lambda value, _: value == int(value) and abs(value) <= 1 << (bits - 1)


def _of_digits(value: Decimal, kind: exp.DataType) -> bool:
    precision, scale = ([int(each.name) for each in kind.expressions] + [10, 0][len(kind.expressions) :])[:2]
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -scale and value.adjusted() < precision - scale


_FITS: Final[Mapping[exp.DType, Callable[[Decimal, exp.DataType], bool]]] = {
    exp.DType.TINYINT: _of_bits(8),
    exp.DType.SMALLINT: _of_bits(16),
    exp.DType.INT: _of_bits(32),
    exp.DType.BIGINT: _of_bits(64),
    exp.DType.DECIMAL: _of_digits,
    exp.DType.DOUBLE: lambda value, _: math.isfinite(float(value)),
    exp.DType.FLOAT: lambda value, _: unpack("f", pack("f", float(value)))[0] == float(value),
}


def _time(text: str) -> time:
    clock = time.fromisoformat(text)
    if clock.tzinfo is not None:
        raise ValueError(f"expected a time of day without a zone, found {text}")
    return clock


_TYPED: Final[Mapping[exp.DType, Callable[[str], Literal]]] = {
    exp.DType.DATE: date.fromisoformat,
    exp.DType.TIME: _time,
    exp.DType.TIMESTAMP: datetime.fromisoformat,
    exp.DType.TIMESTAMPTZ: datetime.fromisoformat,
    exp.DType.TIMESTAMPNTZ: datetime.fromisoformat,
}

_READ: Final[Mapping[type, Callable[[Any], Literal]]] = {
    exp.Literal: _written,
    exp.Neg: _negative,
    exp.Cast: _typed,
    exp.TryCast: _sized,
    exp.Boolean: lambda node: bool(node.this),
    exp.HexString: lambda node: bytes.fromhex(node.this),
    exp.Null: lambda node: None,
}


def _ordered(value: object) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(f"expected a finite number, found {text}")
    return number


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"expected true or false, found {text}")
    return text.lower() == "true"


_CONVERT: Final[Mapping[tuple[type, type], Callable[[Any], object]]] = {
    (int, Decimal): Decimal,
    (float, Decimal): float,
    (int, str): _number,
    (Decimal, str): _number,
    (float, str): float,
    (bool, str): _truth,
    (bytes, str): str.encode,
    (date, str): date.fromisoformat,
    (datetime, str): datetime.fromisoformat,
    (datetime, date): lambda day: datetime.combine(day, time()),
    (time, str): _time,
}
"""(type of the value, type of the literal) -> the literal as such a value; equal types need none."""
