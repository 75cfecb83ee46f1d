"""Headers of the pages in a Parquet column chunk -> whether what they state of counts, sizes and checksums can be true.

Headers are read as writers write them: known fields in their order, in Thrift's compact protocol. One written in
another way that Thrift allows is not read, so that no two readers find different numbers in it.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Final, NamedTuple

DATA, DICTIONARY = 0, 2
"""Types of pages, as parquet.thrift numbers them. Those of version 2 are not read: nothing else states the sizes of
their levels."""


class PageHeader(NamedTuple):
    """Numbers as they are stored, also negative ones. Sizes are bytes of the body, with its levels.

    `checksum`: CRC32 of the body, unsigned; None if it is not stated. `has_runs`: definition levels are in runs.
    `body`: where the page's bytes begin in what was read.
    """

    kind: int
    uncompressed: int
    compressed: int
    checksum: int | None
    values: int
    has_runs: bool
    body: int


@dataclass(frozen=True, slots=True)
class FlatChunk:
    """What a footer states of a column chunk that repeats no value: bytes from `start` to `stop`, values with the nulls
    among them, bytes uncompressed. `width`: bytes of a value, None where that differs. `is_nullable`: values have
    definition levels."""

    start: int
    stop: int
    values: int
    uncompressed: int
    codec: str
    width: int | None
    is_nullable: bool


_NUMBER: Final = rb"(?:[\x80-\xff]{0,3}[\x00-\x7f]|[\x80-\xff]{4}[\x00-\x0f])"
_INT: Final = rb"\x15(" + _NUMBER + rb")"
_ENCODING: Final = rb"\x15[\x00\x04\x06\x08\x0a\x0c\x10\x12]"
"""Of values. Without DELTA_BYTE_ARRAY, which has no size of its decoded values."""
_OF_DICTIONARY: Final = rb"\x15[\x00\x04]"
_OF_LEVELS: Final = rb"\x15([\x06\x08])"
_OF_NO_LEVELS: Final = rb"\x15[\x06\x08]"
_RUNS: Final = b"\x06"
_LAYOUTS: Final = {
    DATA: re.compile(
        rb"\x15\x00"
        + _INT * 2
        + rb"(?:"
        + _INT
        + rb"\x1c|\x2c)"
        + _INT
        + _ENCODING
        + _OF_LEVELS
        + _OF_NO_LEVELS
        + rb"(\x1c?)"
    ),
    DICTIONARY: re.compile(
        rb"\x15\x04" + _INT * 2 + rb"(?:" + _INT + rb"\x3c|\x4c)" + _INT + _OF_DICTIONARY + rb"[\x11\x12]?()()"
    ),
}
"""Sizes, the checksum, the number of values, the encoding of levels, and whether statistics follow."""
_HAS_STATISTICS: Final = b"\x1c"
_ENDS: Final = b"\0\0"
"""Of the part for the type of page, and of the header."""
_LONG: Final = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")
_TRUE, _FALSE, _I64, _BINARY = 1, 2, 6, 8
_UNSIGNED: Final = 0xFFFFFFFF
_STATISTICS: Final = {
    1: (_BINARY,),
    2: (_BINARY,),
    3: (_I64,),
    4: (_I64,),
    5: (_BINARY,),
    6: (_BINARY,),
    7: (_TRUE, _FALSE),
    8: (_TRUE, _FALSE),
}


def page_header(data: bytes, start: int, stop: int) -> PageHeader | None:
    """The header that starts at a byte; None if it is written in an unknown way or reaches beyond `stop`."""
    layout = _LAYOUTS.get(data[start + 1] >> 1) if start + 1 < stop else None
    found = layout.match(data, start, stop) if layout else None
    if found is None:
        return None
    size, stored, crc, count, levels, statistics = found.groups()
    end = _after_statistics(data, found.end(), stop) if statistics == _HAS_STATISTICS else found.end()
    if end is None or data[end : min(end + len(_ENDS), stop)] != _ENDS:
        return None
    checksum = None if crc is None else _signed(crc) & _UNSIGNED
    kind, body = data[start + 1] >> 1, end + len(_ENDS)
    return PageHeader(kind, _signed(size), _signed(stored), checksum, _signed(count), levels == _RUNS, body)


def has_sound_pages(data: bytes, chunk: FlatChunk) -> bool:
    """Whether the pages have the chunk's values and bytes, no more and no less, none is without values, and bodies have
    the checksums that headers state.

    False also if a header is written in an unknown way.
    """
    at, values = chunk.start, 0
    while at < chunk.stop:
        page = page_header(data, at, chunk.stop)
        if page is None or not _fits(data, page, chunk) or not _is_as_written(data, page):
            return False
        if page.kind != DICTIONARY:
            values += page.values
        elif at > chunk.start:
            return False
        at = page.body + page.compressed
    return at == chunk.stop and values == chunk.values


def _fits(data: bytes, page: PageHeader, chunk: FlatChunk) -> bool:
    if not (0 <= page.compressed <= chunk.stop - page.body and 0 <= page.uncompressed <= chunk.uncompressed):
        return False
    return _has_values(page, chunk) and _unpacks(data, page, chunk.codec)


def _has_values(page: PageHeader, chunk: FlatChunk) -> bool:
    if page.kind == DATA:
        # Who reads levels as runs finds other nulls in packed ones.
        return 0 < page.values <= chunk.values and (page.has_runs or not chunk.is_nullable)
    # A dictionary may hold values that no row has. Each takes a byte or more.
    if chunk.width is None:
        return 0 <= page.values <= page.uncompressed
    return page.values * chunk.width == page.uncompressed


def _is_as_written(data: bytes, page: PageHeader) -> bool:
    """By the checksum, where one is stated (parquet-format, "Checksumming"). 0.3 CPU seconds for a GiB."""
    body = memoryview(data)[page.body : page.body + page.compressed]
    return page.checksum is None or zlib.crc32(body) == page.checksum


def _unpacks(data: bytes, page: PageHeader, codec: str) -> bool:
    """Whether the size that the header states is the one that is stored, where that is known without decompressing."""
    if codec == "UNCOMPRESSED":
        return page.compressed == page.uncompressed
    if codec != "SNAPPY":
        return True
    stated = _LONG.match(data, page.body, page.body + page.compressed)
    return stated is not None and _unsigned(stated[0]) == page.uncompressed


def _after_statistics(data: bytes, at: int, stop: int) -> int | None:
    """The byte after the last field and the end of the struct that starts at a byte."""
    field = 0
    while at < stop and (head := data[at]):
        field, kind, at = field + (head >> 4), head & 15, at + 1
        if head >> 4 == 0 or kind not in _STATISTICS.get(field, ()):
            return None
        if kind in (_I64, _BINARY):
            number = _LONG.match(data, at, stop)
            if number is None:
                return None
            at = number.end() + (_unsigned(number[0]) if kind == _BINARY else 0)
    return at + 1 if at < stop else None


def _unsigned(digits: bytes) -> int:
    value = 0
    for digit in reversed(digits):
        value = value << 7 | digit & 0x7F
    return value


def _signed(digits: bytes) -> int:
    value = digits[0] if len(digits) == 1 else _unsigned(digits)
    return value >> 1 ^ -(value & 1)
