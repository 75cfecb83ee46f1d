"""Headers of pages: the same numbers as by a reader of any Thrift, and chunks whose headers cannot all be true."""

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.encodings.parquet_footer import (
    BINARY,
    BYTE,
    FALSE,
    I32,
    I64,
    STRUCT,
    TRUE,
    Fields,
    footer_bytes,
    read_footer,
)
from nightkeep.kernels.parquet_pages import DATA, DICTIONARY, FlatChunk, PageHeader, has_sound_pages, page_header

NUMBERS = st.integers(-(2**31), 2**31 - 1) | st.integers(-200, 200)
ENCODINGS = st.sampled_from([0, 2, 3, 4, 5, 6, 8, 9])
LEVELS = st.sampled_from([3, 4])
MEMBERS = {DATA: 5, DICTIONARY: 7}
"""The field that tells of a page of a type."""


RUNS = 3
"""How parquet.thrift numbers the encoding RLE."""


def thrift(fields: Fields) -> bytes:
    return footer_bytes(fields)[: -len(b"SIZEPAR1")]


def i32(told: Mapping[int, int]) -> Fields:
    return {number: (I32, value) for number, value in told.items()}


@st.composite
def statistics(draw: st.DrawFn) -> Fields:
    flag = st.tuples(st.sampled_from([TRUE, FALSE]), st.none())
    text, count = st.tuples(st.just(BINARY), st.binary(max_size=200)), st.tuples(st.just(I64), st.integers(0, 2**62))
    kinds = {1: text, 2: text, 3: count, 4: count, 5: text, 6: text, 7: flag, 8: flag}
    return {number: draw(kinds[number]) for number in sorted(draw(st.sets(st.sampled_from(range(1, 9)))))}


@st.composite
def headers(draw: st.DrawFn) -> Fields:
    kind = draw(st.sampled_from(sorted(MEMBERS)))
    told = i32({1: draw(NUMBERS), 2: draw(st.sampled_from([0, 2]) if kind == DICTIONARY else ENCODINGS)})
    if kind == DATA:
        told |= i32({3: draw(LEVELS), 4: draw(LEVELS)})
        if draw(st.booleans()):
            told[5] = (STRUCT, draw(statistics()))
    elif draw(st.booleans()):
        told[3] = (draw(st.sampled_from([TRUE, FALSE])), None)
    checksum = i32({4: draw(NUMBERS)}) if draw(st.booleans()) else {}
    return i32({1: kind, 2: draw(NUMBERS), 3: draw(NUMBERS)}) | checksum | {MEMBERS[kind]: (STRUCT, told)}


def read_slowly(data: bytes) -> PageHeader:
    """By the reader of footers, of bytes that are one header. Raises IndexError if they end before it."""
    fields = read_footer(pa.BufferReader(data + struct.pack("<I", len(data)) + b"PAR1"))
    kind = fields[1][1]
    told = fields[MEMBERS[kind]][1]
    checksum = fields[4][1] % 2**32 if 4 in fields else None
    has_runs = kind == DATA and told[3][1] == RUNS
    return PageHeader(kind, fields[2][1], fields[3][1], checksum, told[1][1], has_runs, len(data))


@settings(max_examples=examples(200))
@given(headers(), st.binary(max_size=20))
def test_headers_are_read_as_by_the_reader_of_footers(fields: Fields, rest: bytes) -> None:
    data = thrift(fields)
    assert page_header(data + rest, 0, len(data + rest)) == read_slowly(data)
    assert page_header(data + rest, 0, len(data) - 1) is None


@settings(max_examples=examples(400))
@given(headers(), st.data())
def test_what_is_read_of_damaged_headers_is_read_alike_by_both(fields: Fields, drawn: st.DataObject) -> None:
    data = bytearray(thrift(fields) + b"\0\0\x15\0")
    for _ in range(drawn.draw(st.integers(1, 3))):
        data[drawn.draw(st.integers(0, len(data) - 1))] = drawn.draw(st.integers(0, 255))
    found = page_header(bytes(data), 0, len(data))
    if found is not None:
        assert read_slowly(bytes(data[: found.body])) == found
        with pytest.raises(IndexError):
            read_slowly(bytes(data[: found.body - 1]))


@pytest.mark.parametrize(
    "fields",
    [
        i32({1: 0, 2: 8, 3: 8}),
        i32({1: 1, 2: 8, 3: 8}) | {6: (STRUCT, {})},
        i32({1: 0, 2: 8, 3: 8}) | {5: (STRUCT, i32({1: 1, 2: 7, 3: 3, 4: 3}))},
        i32({1: 0, 2: 8, 3: 8}) | {5: (STRUCT, i32({1: 1, 2: 0, 3: 3, 4: 3}) | {5: (STRUCT, {9: (BYTE, 1)})})},
        i32({1: 0, 2: 8, 3: 8}) | {5: (STRUCT, i32({1: 1, 2: 0, 3: 3, 4: 3})), 9: (BYTE, 1)},
        {1: (I32, 0), 2: (I64, 8), 3: (I32, 8), 5: (STRUCT, i32({1: 1, 2: 0, 3: 3, 4: 3}))},
        i32({1: 0, 2: 8, 3: 8}) | {5: (STRUCT, i32({1: 1, 2: 0, 3: 0, 4: 3}))},
        i32({1: 2, 2: 8, 3: 8}) | {7: (STRUCT, i32({1: 1, 2: 8}))},
        i32({1: 3, 2: 8, 3: 8}) | {8: (STRUCT, i32({1: 1, 2: 0, 3: 1, 4: 0, 5: 0, 6: 0}))},
    ],
    ids=[
        "no part for the type",
        "an index",
        "prefixed texts",
        "unknown statistics",
        "unknown field",
        "another type",
        "plain levels",
        "a dictionary of numbers in a dictionary",
        "pages of version 2",
    ],
)
def test_headers_written_in_other_ways_are_not_read(fields: Fields) -> None:
    data = thrift(fields)
    assert page_header(data, 0, len(data)) is None


@pytest.mark.parametrize("data", [b"", b"\x15", b"\x15\x00", bytes(20), b"\xff" * 20])
def test_bytes_that_are_no_header_are_not_read(data: bytes) -> None:
    assert page_header(data, 0, len(data)) is None


PACKED = b"\x50" + bytes(40)
"""A body that says, as Snappy does, that it unpacks to 80 bytes."""


def page(kind: int, told: Mapping[int, int], body: bytes = PACKED, **sizes: int) -> bytes:
    told = {DATA: {2: 0, 3: 3, 4: 3}, DICTIONARY: {2: 0}}[kind] | told
    size, unpacked = sizes.get("size", len(body)), sizes.get("unpacked", 80)
    checksum = i32({4: sizes["checksum"]}) if "checksum" in sizes else {}
    return thrift(i32({1: kind, 2: unpacked, 3: size}) | checksum | {MEMBERS[kind]: (STRUCT, i32(told))}) + body


FIRST, NEXT, LAST = page(DICTIONARY, {1: 10}), page(DATA, {1: 10}), page(DATA, {1: 10})


def is_sound(*pages: bytes, **told: Any) -> bool:
    data = b"".join((b"PAR1", *pages))
    chunk = {
        "start": 4,
        "stop": len(data),
        "values": 20,
        "uncompressed": 400,
        "codec": "SNAPPY",
        "width": None,
        "is_nullable": True,
    }
    return has_sound_pages(data + b"\0 and more", FlatChunk(**(chunk | told)))


def test_pages_that_have_what_the_footer_reports_are_sound() -> None:
    assert is_sound(FIRST, NEXT, LAST)
    assert is_sound(NEXT, LAST, codec="ZSTD")
    assert is_sound(FIRST, *[page(DATA, {1: 10}, bytes(80))] * 2, codec="UNCOMPRESSED") is False
    assert is_sound(*[page(DATA, {1: 10}, bytes(80))] * 2, codec="UNCOMPRESSED")


@pytest.mark.parametrize(
    "damaged",
    [
        page(DATA, {1: -10}),
        page(DATA, {1: 0}),
        page(DATA, {1: 9}),
        page(DATA, {1: 11}),
        page(DATA, {1: 2**31 - 1}),
        page(DATA, {1: 10}, size=-1),
        page(DATA, {1: 10}, size=39),
        page(DATA, {1: 10}, size=42),
        page(DATA, {1: 10}, unpacked=-1),
        page(DATA, {1: 10}, unpacked=79),
        page(DATA, {1: 10}, b"\x91\x03" + bytes(40), unpacked=401),
        page(DATA, {1: 10}, b"\xff" * 20),
        page(DICTIONARY, {1: 10}),
    ],
)
def test_a_header_that_cannot_be_true_is_not_sound(damaged: bytes) -> None:
    assert not is_sound(FIRST, damaged, LAST)


@pytest.mark.parametrize(("values", "width"), [(9, 8), (11, 8), (10, 4), (20, 8), (-10, 8)])
def test_a_dictionary_has_as_many_values_as_its_bytes_hold(values: int, width: int) -> None:
    assert is_sound(FIRST, NEXT, LAST, width=8)
    assert not is_sound(page(DICTIONARY, {1: values}), NEXT, LAST, width=width)


@pytest.mark.parametrize("values", [-1, 81, 2**31 - 1])
def test_a_dictionary_of_more_values_than_bytes_is_not_sound(values: int) -> None:
    assert not is_sound(page(DICTIONARY, {1: values}), NEXT, LAST)


def test_a_page_more_or_less_is_not_sound() -> None:
    assert not is_sound(FIRST, NEXT)
    assert not is_sound(FIRST, NEXT, LAST, LAST)
    assert not is_sound(FIRST, NEXT, page(DATA, {1: -10}), LAST, NEXT)
    assert not is_sound(FIRST, NEXT, LAST, b"\0" * 9)
    assert not is_sound(FIRST, NEXT, LAST, stop=4 + len(FIRST + NEXT + LAST) - 1)


def _signed(checksum: int) -> int:
    return checksum - 2**32 if checksum >= 2**31 else checksum


@pytest.mark.parametrize("body", [PACKED, *(b"\x50" + bytes([n]) + bytes(39) for n in range(8))])
def test_a_body_is_held_to_the_checksum_of_its_header(body: bytes) -> None:
    right = zlib.crc32(body)
    assert is_sound(FIRST, page(DATA, {1: 10}, body, checksum=_signed(right)), LAST)
    assert not is_sound(FIRST, page(DATA, {1: 10}, body, checksum=_signed(right ^ 1)), LAST)
    assert not is_sound(page(DICTIONARY, {1: 10}, body, checksum=_signed(right ^ 1)), NEXT, LAST)


def test_packed_levels_are_sound_only_where_there_are_none() -> None:
    packed = page(DATA, {1: 10, 3: 4})
    assert not is_sound(FIRST, packed, LAST)
    assert is_sound(FIRST, packed, LAST, is_nullable=False)
    assert is_sound(FIRST, page(DATA, {1: 10, 4: 4}), LAST), "levels of repetition, which flat columns have none of"
