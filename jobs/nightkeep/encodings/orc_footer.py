"""An open ORC file -> its columns and stripes, which Arrow does not return (ORC specification v1, "File Tail").

The footer is a message of Protocol Buffers; unknown fields are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from pyarrow import orc

Message: TypeAlias = Mapping[int, Sequence[int | bytes]]
"""The values of each field, in order, by field number. A length-delimited value is bytes, any other an integer."""


class OrcKind(IntEnum):
    """Kinds of types by their number in a footer. Never renumber."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


@dataclass(frozen=True, slots=True)
class OrcStripe:
    """Where a stripe starts in the file, and its number of rows; where its own footer starts, and its bytes."""

    offset: int
    rows: int
    footer: int = 0
    footer_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OrcFooter:
    """Top-level columns by name and kind, and stripes, both in the order of the file. `codec`: by its number.

    `kinds` are those of all columns, nested ones too.
    """

    columns: tuple[tuple[str, OrcKind], ...]
    stripes: tuple[OrcStripe, ...]
    codec: int = 0
    kinds: frozenset[OrcKind] = frozenset()


def orc_footer(file: orc.ORCFile) -> OrcFooter:
    """The footer of an open file. Raises ValueError for one that breaks the format."""
    tail = message(_bytes(file.reader.serialized_file_tail()))
    footer = message(_bytes(tail.get(_FOOTER, (b"",))[0]))
    script = message(_bytes(tail.get(_SCRIPT, (b"",))[0]))
    types = [message(_bytes(each)) for each in footer.get(_TYPES, ())]
    if not types:
        raise ValueError("a footer without types")
    names = [_bytes(name).decode() for name in types[0].get(_NAMES, ())]
    places = list(_packed(types[0], _CHILDREN))
    if len(names) != len(places) or not all(0 < place < len(types) for place in places):
        raise ValueError(f"a row of {len(names)} names, found {len(places)} types")
    stripes = [message(_bytes(each)) for each in footer.get(_STRIPES, ())]
    return OrcFooter(
        tuple((name, OrcKind(_number(types[at], _KIND))) for name, at in zip(names, places, strict=True)),
        tuple(map(_stripe, stripes)),
        _number(script, _CODEC),
        frozenset(OrcKind(_number(kind, _KIND)) for kind in types),
    )


def _stripe(fields: Message) -> OrcStripe:
    start, index, data = (_number(fields, number) for number in (_OFFSET, _INDEX, _DATA))
    return OrcStripe(start, _number(fields, _ROWS), start + index + data, _number(fields, _STRIPE_FOOTER))


# Field numbers: of FileTail, PostScript, Footer, Type and StripeInformation in orc_proto.proto.
_SCRIPT, _FOOTER = 1, 2
_CODEC = 2
_STRIPES, _TYPES = 3, 4
_KIND, _CHILDREN, _NAMES = 1, 2, 3
_OFFSET, _INDEX, _DATA, _STRIPE_FOOTER, _ROWS = 1, 2, 3, 4, 5


def message(data: bytes) -> Message:
    """Fields of a message, unknown ones included."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value: int | bytes
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
            case 5:
                value, at = data[at : at + 4], at + 4
            case wire:
                raise ValueError(f"a field of wire type {wire}, expected one that footers have")
        if at > len(data):
            raise ValueError(f"a message of {len(data)} bytes that ends within a field")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError(f"a number of at most ten bytes, found none before {at}")


def _packed(message: Message, field: int) -> Iterator[int]:
    """Numbers of a repeated field, packed or not."""
    for each in message.get(field, ()):
        if isinstance(each, int):
            yield each
            continue
        at = 0
        while at < len(each):
            value, at = _varint(each, at)
            yield value


def _number(message: Message, field: int) -> int:
    value = message.get(field, (0,))[-1]
    if isinstance(value, bytes):
        raise ValueError(f"a number in field {field}, found {len(value)} bytes")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("bytes, found a number")
    return value
