"""A Parquet footer's bytes <-> its fields, in Thrift's compact protocol. Unknown fields survive.

Arrow can read and write a footer, but not change one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

Fields: TypeAlias = dict[int, tuple[int, Any]]
"""(type, value) by field id. Integers are signed, binary is bytes, a list is (element type, values); of a boolean
field the type is the value."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_LONG_LIST: Final = 15
_END: Final = struct.Struct("<I4s")


def read_footer(source: pa.NativeFile) -> Fields:
    """FileMetaData of a Parquet file."""
    source.seek(-_END.size, 2)
    length, _ = _END.unpack(source.read(_END.size))
    source.seek(-_END.size - length, 2)
    return _ThriftParser(source.read(length)).fields()


def footer_bytes(footer: Fields) -> bytes:
    """The end of a Parquet file that has this footer."""
    data = _fields(footer)
    return data + struct.pack("<I", len(data)) + b"PAR1"


def structs(fields: Fields, field: int) -> Sequence[Fields]:
    """The elements of a list of structs, to be changed in place."""
    _, (_, elements) = fields[field]
    members: Sequence[Fields] = elements
    return members


class _ThriftParser:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def fields(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields[number] = (kind, None if kind in (TRUE, FALSE) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 3 | 1 | 2:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                head = self._byte()
                count = self._varint() if head >> 4 == _LONG_LIST else head >> 4
                return head & 15, [self._value(head & 15) for _ in range(count)]
            case 12:
                return self.fields()
        raise ValueError(f"Parquet footer: expected a type that footers use, found {kind} before {self._at}")

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _fields(fields: Fields) -> bytes:
    parts, last = [], 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - last
        head = bytes([step << 4 | kind]) if 0 < step < _LONG_LIST + 1 else bytes([kind]) + _signed(number)
        parts.append(head + (b"" if kind in (TRUE, FALSE) else _bytes(kind, value)))
        last = number
    return b"".join(parts) + b"\0"


def _bytes(kind: int, value: Any) -> bytes:
    match kind:
        case 3 | 1 | 2:
            return bytes([value])
        case 4 | 5 | 6:
            return _signed(value)
        case 7:
            return bytes(value)
        case 8:
            return _varint(len(value)) + bytes(value)
        case 12:
            return _fields(value)
    element, values = value
    short = len(values) < _LONG_LIST
    head = bytes([len(values) << 4 | element]) if short else bytes([_LONG_LIST << 4 | element]) + _varint(len(values))
    return head + b"".join(_bytes(element, one) for one in values)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _signed(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else -value * 2 - 1)
