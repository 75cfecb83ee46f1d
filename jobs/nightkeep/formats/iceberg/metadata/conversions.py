"""Single values <-> bytes of column and partition bounds (Iceberg spec, Appendix D, "Binary single-value").

Values have the form of partition values in manifests: dates are days, times microseconds, timestamps microseconds or
nanoseconds since the epoch, uuid, fixed and binary are bytes, decimals are Decimal. They sort as the spec orders the
type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from nightkeep.errors import CorruptMetadata, kind_of, reason_of

Value = bool | int | float | str | bytes | Decimal


def to_bytes(kind: IcebergType, value: object) -> bytes:
    """The bytes of a value in a bound. Raises ValueError for a value that is not of the type."""
    form = _FORMS.get(type(kind))
    if form is None:
        raise ValueError(f"bounds of type {kind}: expected a primitive type")
    try:
        return form.pack(kind, value)
    except (struct.error, TypeError, AttributeError, ArithmeticError, ValueError) as failure:
        raise ValueError(f"{value!r:.80}: expected a value of {kind}, found {failure}") from failure


def from_bytes(kind: IcebergType, data: bytes, *, subject: str) -> Value:
    """The value of a bound of a column whose current type is `kind`.

    The column's type may have been narrower when the bound was written: four bytes are accepted for a long and a
    double. Raises CorruptMetadata naming `subject` for bytes that are no value of the type.
    """
    form = _FORMS.get(type(kind))
    try:
        if form is None:
            raise ValueError("a type without bounds")
        return form.unpack(kind, bytes(data))
    except (struct.error, ValueError, ArithmeticError) as failure:
        found = f"{kind_of(bytes(data))} ({reason_of(failure)})"
        raise CorruptMetadata(subject, f"a single value of type {kind}", found) from failure


def decimal_of(unscaled: bytes, scale: int) -> Decimal:
    """The exact Decimal of a big-endian two's complement number. Raises ValueError for more than 38 digits."""
    if not 0 < len(unscaled) <= _DECIMAL_BYTES:
        raise ValueError(f"a decimal of {len(unscaled)} bytes")
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, context=_EXACT)


def unscaled_of(value: Decimal, scale: int) -> int:
    """`value` times ten to the power of `scale`. Raises ValueError if that is not an integer."""
    number = value.scaleb(scale, context=_EXACT)
    if number != number.to_integral_value():
        raise ValueError(f"{value}: expected at most {scale} digits after the point")
    return int(number)


@dataclass(frozen=True, slots=True)
class _Form:
    pack: Callable[[IcebergType, object], bytes]
    unpack: Callable[[IcebergType, bytes], Value]


_EXACT: Final = Context(prec=80)
_DECIMAL_BYTES: Final = 17
"""38 digits take 16 bytes; a writer may put one sign byte before them."""


def _number(code: str, narrow: str | None = None) -> _Form:
    form = struct.Struct(f"<{code}")
    narrower = struct.Struct(f"<{narrow}") if narrow else form

    def unpack(_: IcebergType, data: bytes) -> Value:
        (value,) = (narrower if len(data) == narrower.size else form).unpack(data)
        return value  # type: ignore[no-any-return]  # the format code decides what struct returns

    return _Form(lambda _, value: form.pack(value), unpack)


def _pack_boolean(_: IcebergType, value: object) -> bytes:
    return b"\x01" if value else b"\x00"


def _unpack_boolean(_: IcebergType, data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError(f"{len(data)} bytes")
    # Any other byte than zero is true (Conversions.java).
    return data != b"\x00"


def _pack_text(_: IcebergType, value: object) -> bytes:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value.encode()


def _pack_raw(kind: IcebergType, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(type(value).__name__)
    return _unpack_raw(kind, value)


def _unpack_raw(kind: IcebergType, data: bytes) -> bytes:
    size = 16 if isinstance(kind, UUIDType) else len(kind) if isinstance(kind, FixedType) else None
    # A bound of a fixed column may be truncated, as of a binary column.
    if size is not None and (len(data) > size or (len(data) < size and isinstance(kind, UUIDType))):
        raise ValueError(f"{len(data)} bytes")
    return data


def _pack_decimal(kind: IcebergType, value: object) -> bytes:
    if not isinstance(value, Decimal) or not isinstance(kind, DecimalType):
        raise TypeError(type(value).__name__)
    number = unscaled_of(value, kind.scale)
    # The fewest bytes that hold number and sign, as Java's BigInteger writes.
    return number.to_bytes(((number if number >= 0 else ~number).bit_length() + 8) // 8, "big", signed=True)


def _unpack_decimal(kind: IcebergType, data: bytes) -> Decimal:
    return decimal_of(data, kind.scale if isinstance(kind, DecimalType) else 0)


_LONG: Final = _number("q", "i")
_RAW: Final = _Form(_pack_raw, _unpack_raw)
_FORMS: Final[Mapping[type[IcebergType], _Form]] = {
    BooleanType: _Form(_pack_boolean, _unpack_boolean),
    IntegerType: _number("i"),
    LongType: _LONG,
    FloatType: _number("f"),
    DoubleType: _number("d", "f"),
    DateType: _number("i"),
    TimeType: _LONG,
    # Four bytes, the days of a date before its promotion to a timestamp, are refused: the spec does not state whether
    # such a bound counts days or microseconds, and no engine makes that promotion yet.
    TimestampType: _number("q"),
    TimestamptzType: _number("q"),
    TimestampNanoType: _number("q"),
    TimestamptzNanoType: _number("q"),
    StringType: _Form(_pack_text, lambda _, data: data.decode()),
    UUIDType: _RAW,
    FixedType: _RAW,
    BinaryType: _RAW,
    DecimalType: _Form(_pack_decimal, _unpack_decimal),
}
