"""Single values <-> bytes: bounds of columns and of partitions (Iceberg spec, Appendix D, "Binary single-value").

Values are those that manifests hold for partitions: dates as days, times, timestamps as microseconds or nanoseconds
since the epoch, uuid, fixed and binary as bytes, decimals as Decimal. They order as the spec orders the type.
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
    """A value as bounds store it. Raises ValueError for a value that is none of the type's."""
    form = _FORMS.get(type(kind))
    if form is None:
        raise ValueError(f"bounds of type {kind}: expected a primitive type")
    try:
        return form.pack(kind, value)
    except (struct.error, TypeError, AttributeError, ArithmeticError, ValueError) as failure:
        raise ValueError(f"{value!r:.80}: expected a value of {kind}, found {failure}") from failure


def from_bytes(kind: IcebergType, data: bytes, *, subject: str) -> Value:
    """The value of a bound of a column that is of type `kind` now.

    A column may have been of a narrower type when the bound was written: four bytes are read for a long and for a
    double. Raises CorruptMetadata naming `subject` for bytes that are no value of the type, or of any.
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
    """A big-endian two's complement number of any length, exactly. Raises ValueError for more than 38 digits."""
    if not 0 < len(unscaled) <= _DECIMAL_BYTES:
        raise ValueError(f"a decimal of {len(unscaled)} bytes")
    return Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, context=_EXACT)


def unscaled_of(value: Decimal, scale: int) -> int:
    """`value` times ten to the power of `scale`. Raises ValueError where that is no whole number."""
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
"""38 digits take 16; a writer may leave one byte of sign before them."""


def _number(code: str, narrow: str | None = None) -> _Form:
    form = struct.Struct(f"<{code}")
    narrower = struct.Struct(f"<{narrow}") if narrow else form

    def unpack(_: IcebergType, data: bytes) -> Value:
        (value,) = (narrower if len(data) == narrower.size else form).unpack(data)
        return value  # type: ignore[no-any-return]  # what struct gives is by its code

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
    # A bound of a fixed column may be cut like one of a binary column.
    if size is not None and (len(data) > size or (len(data) < size and isinstance(kind, UUIDType))):
        raise ValueError(f"{len(data)} bytes")
    return data


def _pack_decimal(kind: IcebergType, value: object) -> bytes:
    if not isinstance(value, Decimal) or not isinstance(kind, DecimalType):
        raise TypeError(type(value).__name__)
    number = unscaled_of(value, kind.scale)
    # As few bytes as hold number and sign, as Java's BigInteger has it.
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
    # A date that became a timestamp has days in its old bounds, which no reader tells from microseconds: such a
    # promotion is not made by any engine yet, and four bytes are no value of these types.
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
