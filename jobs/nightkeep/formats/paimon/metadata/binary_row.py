"""Values <-> BinaryRow bytes as manifests carry them. What Java wrote decodes, and encodes to the same bytes.

Layout (BinaryRow, AbstractBinaryWriter, SerializationUtils.serializeBinaryRow): int32 big-endian arity; then,
little-endian and with offsets from here, a null-bit area whose byte 0 is the row kind, one 8-byte slot per
field, and 8-byte aligned variable parts. Values are described in values.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final, TypeAlias

import pyarrow as pa

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import NANOS_PER_MILLI, Present, Value, canonical
from nightkeep.model.arrow_types import Scalar

SortKey: TypeAlias = tuple[tuple[bytes | float | Decimal, ...], ...]

MAX_COMPACT_DECIMAL_PRECISION: Final = 18
MAX_COMPACT_TIMESTAMP_PRECISION: Final = 3
MAX_INLINE_BYTES: Final = 7


def encode_row(values: Sequence[Value | Scalar], types: Sequence[PaimonType]) -> bytes:
    """One row as SerializationUtils.serializeBinaryRow writes it, row kind +I.

    `values` and `types` are parallel; an Arrow scalar stands for its canonical value. Raises ValueError with
    the field's position for a value its type cannot hold exactly, and for types that are not primitive.
    """
    if len(values) != len(types):
        raise ValueError(f"BinaryRow: expected {len(types)} values, found {len(values)}")
    null_bits = bytearray(_null_area(len(types)))
    slots: list[bytes] = []
    tail = bytearray()
    start = len(null_bits) + _WORD * len(types)
    for position, (value, kind) in enumerate(zip(values, types, strict=True)):
        try:
            plain = canonical(value, kind) if isinstance(value, pa.Scalar) else value
            slot, part = _encode_field(plain, kind, start + len(tail))
        except (TypeError, ArithmeticError, ValueError, struct.error) as error:
            subject = f"BinaryRow field {position}"
            raise ValueError(f"{subject}: expected a value of {kind}, found {value!r}") from error
        if plain is None:
            bit = position + _KIND_BITS
            null_bits[bit // 8] |= 1 << bit % 8
        slots.append(slot)
        tail += part
    return _ARITY.pack(len(types)) + bytes(null_bits) + b"".join(slots) + bytes(tail)


def decode_row(data: bytes, types: Sequence[PaimonType], *, optional: bool = False) -> tuple[Value, ...]:
    """The values of one serialised row, in field order; the row kind byte is checked and dropped. Raises ValueError
    stating what was expected and found, whatever the bytes are. `optional`: a field that is no value is null."""
    row, start = _row(data, len(types)), _null_area(len(types))
    decoded: list[Value] = []
    for position, kind in enumerate(types):
        bit = position + _KIND_BITS
        if row[bit // 8] >> bit % 8 & 1:
            decoded.append(None)
            continue
        slot = row[start + _WORD * position : start + _WORD * (position + 1)]
        try:
            decoded.append(_decode_field(slot, kind, row))
        except ValueError as error:
            if not optional:
                raise ValueError(f"BinaryRow field {position} ({kind}): {error}") from error
            decoded.append(None)
    return tuple(decoded)


def arity(data: bytes) -> int:
    """How many fields a serialised row states it has; raises ValueError if it is too short to state."""
    if len(data) < _ARITY.size:
        raise ValueError(f"BinaryRow: expected at least {_ARITY.size} bytes, found {len(data)}")
    return int(_ARITY.unpack_from(data)[0])


def sort_key(values: Sequence[Value], types: Sequence[PaimonType]) -> SortKey:
    """A key for sorted(), min() and max() giving Paimon's order of rows of these types.

    Nulls first; false < true; -0.0 < 0.0, every NaN equal and last; strings by their UTF-8 bytes and binary
    by unsigned bytes, a prefix first; everything else by value (ComparatorCodeGenerator, GenerateUtils).
    """
    return tuple(
        () if value is None else (_comparable(value, kind),) for value, kind in zip(values, types, strict=True)
    )


_WORD: Final = 8
_FLOATS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
# Above the bits of every other double.
_NAN_ORDER: Final = 1 << 63
_KIND_BITS: Final = 8
_MAX_ROW_KIND: Final = 3
_ARITY: Final = struct.Struct(">i")
_LONG: Final = struct.Struct("<q")
# Offset and size of a variable part: (offset << 32) | size as one little-endian long.
_POINTER: Final = struct.Struct("<II")
_DECIMAL_BYTES: Final = 16
_INLINE_FLAG: Final = 0x80

_FIXED: Final[Mapping[TypeRoot, struct.Struct]] = {
    TypeRoot.BOOLEAN: struct.Struct("<?"),
    TypeRoot.TINYINT: struct.Struct("<b"),
    TypeRoot.SMALLINT: struct.Struct("<h"),
    TypeRoot.INT: struct.Struct("<i"),
    TypeRoot.BIGINT: struct.Struct("<q"),
    TypeRoot.FLOAT: struct.Struct("<f"),
    TypeRoot.DOUBLE: struct.Struct("<d"),
    TypeRoot.DATE: struct.Struct("<i"),
    TypeRoot.TIME: struct.Struct("<i"),
}
_TEXTS: Final = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR})
_BINARIES: Final = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY})
_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


def _null_area(fields: int) -> int:
    return (fields + 63 + _KIND_BITS) // 64 * _WORD


def _is_compact(kind: PaimonType) -> bool:
    if kind.root is TypeRoot.DECIMAL:
        return (kind.precision or 0) <= MAX_COMPACT_DECIMAL_PRECISION
    return (kind.precision or 0) <= MAX_COMPACT_TIMESTAMP_PRECISION


def _encode_field(value: Value, kind: PaimonType, offset: int) -> tuple[bytes, bytes]:
    """The field's slot and its variable part, which will start at `offset` of the row."""
    if kind.root in _FIXED or (kind.is_nested and value is None):
        return _encode_fixed(value, kind.root), b""
    if kind.root not in _ENCODE:
        raise ValueError(f"{kind} is not a primitive type")
    return _ENCODE[kind.root](value, kind, offset)


def _encode_fixed(value: Value, root: TypeRoot) -> bytes:
    if value is None:
        return bytes(_WORD)
    if isinstance(value, bool) != (root is TypeRoot.BOOLEAN):
        raise TypeError(f"a {type(value).__name__} is not a {root.value}")
    return _FIXED[root].pack(value).ljust(_WORD, b"\0")


def _encode_bytes(value: Value, kind: PaimonType, offset: int) -> tuple[bytes, bytes]:
    if value is None:
        return bytes(_WORD), b""
    if isinstance(value, str) != (kind.root in _TEXTS):
        raise TypeError(f"a {type(value).__name__} is not a {kind.root.value}")
    raw = value.encode() if isinstance(value, str) else bytes(memoryview(value))  # type: ignore[arg-type]
    if len(raw) <= MAX_INLINE_BYTES:
        return raw.ljust(MAX_INLINE_BYTES, b"\0") + bytes([_INLINE_FLAG | len(raw)]), b""
    return _pointer(offset, len(raw)), raw + bytes(-len(raw) % _WORD)


def _encode_decimal(value: Value, kind: PaimonType, offset: int) -> tuple[bytes, bytes]:
    compact = _is_compact(kind)
    if value is None:
        # Java keeps room for a later update of a field that is not compact, null or not.
        return (bytes(_WORD), b"") if compact else (_pointer(offset, 0), bytes(_DECIMAL_BYTES))
    unscaled = _unscaled(value, kind)
    if compact:
        return _LONG.pack(unscaled), b""
    size = _signed_bytes(unscaled)
    part = unscaled.to_bytes(size, "big", signed=True)
    return _pointer(offset, size), part.ljust(_DECIMAL_BYTES, b"\0")


def _encode_timestamp(value: Value, kind: PaimonType, offset: int) -> tuple[bytes, bytes]:
    compact = _is_compact(kind)
    if value is None:
        return (bytes(_WORD), b"") if compact else (_pointer(offset, 0), bytes(_WORD))
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a {type(value).__name__} is not nanoseconds")
    millis, nanos = divmod(value, NANOS_PER_MILLI)
    if not compact:
        return _pointer(offset, nanos), _LONG.pack(millis)
    if nanos:
        raise ValueError(f"{nanos} ns are finer than the milliseconds that {kind} keeps")
    return _LONG.pack(millis), b""


_Encode: TypeAlias = Callable[[Value, PaimonType, int], tuple[bytes, bytes]]
_ENCODE: Final[Mapping[TypeRoot, _Encode]] = {
    **dict.fromkeys(_TEXTS | _BINARIES, _encode_bytes),
    **dict.fromkeys(_TIMESTAMPS, _encode_timestamp),
    TypeRoot.DECIMAL: _encode_decimal,
}


def _pointer(offset: int, size: int) -> bytes:
    return _POINTER.pack(size, offset)


def _signed_bytes(number: int) -> int:
    # BigInteger.toByteArray: the shortest two's complement that keeps the sign bit.
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _unscaled(value: Value, kind: PaimonType) -> int:
    if not isinstance(value, Decimal):
        raise TypeError(f"a {type(value).__name__} is not a Decimal")
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    quantum = Decimal((0, (1,), -(kind.scale or 0)))
    return int(exact.scaleb(exact.quantize(value, quantum), kind.scale or 0))


def _row(data: bytes, fields: int) -> bytes:
    """The row behind the arity, long enough for its fixed part."""
    width = arity(data)
    if width != fields:
        raise ValueError(f"BinaryRow: expected {fields} fields, found {width}")
    row = bytes(data[_ARITY.size :])
    fixed = _null_area(fields) + _WORD * fields
    if len(row) < fixed:
        raise ValueError(f"BinaryRow of {fields} fields: expected at least {fixed} bytes, found {len(row)}")
    if row[0] > _MAX_ROW_KIND:
        raise ValueError(f"BinaryRow: expected a row kind from 0 to {_MAX_ROW_KIND}, found {row[0]}")
    return row


def _decode_field(slot: bytes, kind: PaimonType, row: bytes) -> Value:
    if kind.root in _FIXED:
        value: Value = _FIXED[kind.root].unpack_from(slot)[0]
        return value
    if kind.root not in _DECODE:
        raise ValueError("expected a primitive type")
    return _DECODE[kind.root](slot, kind, row)


def _decode_text(slot: bytes, kind: PaimonType, row: bytes) -> Value:
    return _decode_binary(slot, kind, row).decode()


def _decode_binary(slot: bytes, kind: PaimonType, row: bytes) -> bytes:
    if slot[-1] & _INLINE_FLAG:
        size = slot[-1] & ~_INLINE_FLAG
        if size > MAX_INLINE_BYTES:
            raise ValueError(f"expected at most {MAX_INLINE_BYTES} inline bytes, found {size}")
        return slot[:size]
    size, offset = _POINTER.unpack(slot)
    return _part(row, offset, size)


def _decode_decimal(slot: bytes, kind: PaimonType, row: bytes) -> Value:
    if _is_compact(kind):
        (unscaled,) = _LONG.unpack(slot)
    else:
        size, offset = _POINTER.unpack(slot)
        if not 1 <= size <= _DECIMAL_BYTES:
            raise ValueError(f"expected 1 to {_DECIMAL_BYTES} bytes of a decimal, found {size}")
        unscaled = int.from_bytes(_part(row, offset, size), "big", signed=True)
    if abs(unscaled) >= 10 ** (kind.precision or 0):
        raise ValueError(f"expected at most {kind.precision} digits, found {unscaled}")
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -(kind.scale or 0)))


def _decode_timestamp(slot: bytes, kind: PaimonType, row: bytes) -> Value:
    if _is_compact(kind):
        return int(_LONG.unpack(slot)[0]) * NANOS_PER_MILLI
    nanos, offset = _POINTER.unpack(slot)
    if nanos >= NANOS_PER_MILLI:
        raise ValueError(f"expected nanoseconds of a millisecond, found {nanos}")
    (millis,) = _LONG.unpack(_part(row, offset, _LONG.size))
    return int(millis) * NANOS_PER_MILLI + int(nanos)


_Decode: TypeAlias = Callable[[bytes, PaimonType, bytes], Value]
_DECODE: Final[Mapping[TypeRoot, _Decode]] = {
    **dict.fromkeys(_TEXTS, _decode_text),
    **dict.fromkeys(_BINARIES, _decode_binary),
    **dict.fromkeys(_TIMESTAMPS, _decode_timestamp),
    TypeRoot.DECIMAL: _decode_decimal,
}


def _part(row: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(row):
        raise ValueError(f"expected {size} bytes at {offset} inside the row, found a row of {len(row)} bytes")
    return row[offset : offset + size]


def _comparable(value: Present, kind: PaimonType) -> bytes | float | Decimal:
    if isinstance(value, str):
        return value.encode()
    return _float_order(float(value)) if kind.root in _FLOATS else value


def _float_order(value: float) -> int:
    """An int that orders as Double.compare; a NaN of either sign is the largest."""
    if value != value:
        return _NAN_ORDER
    (bits,) = _LONG.unpack(struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFF_FFFF_FFFF_FFFF) - 1
