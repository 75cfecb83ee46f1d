"""Footers as fields and back: those that Arrow writes byte for byte, and any that Thrift's compact protocol allows."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.encodings.parquet_footer import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STRUCT,
    TRUE,
    Fields,
    footer_bytes,
    read_footer,
    structs,
)

PLAIN: dict[int, st.SearchStrategy[Any]] = {
    BYTE: st.integers(0, 255),
    I16: st.integers(-(2**15), 2**15 - 1),
    I32: st.integers(-(2**31), 2**31 - 1),
    I64: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.binary(min_size=8, max_size=8),
    BINARY: st.binary(max_size=200),
}


def kinds_of(struct: st.SearchStrategy[Fields]) -> st.SearchStrategy[tuple[int, Any]]:
    elements = PLAIN | {STRUCT: struct}
    lists = st.sampled_from(sorted(elements)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(elements[kind], max_size=18))
    )
    fields = elements | {LIST: lists, SET: lists}
    return st.one_of(
        st.tuples(st.sampled_from([TRUE, FALSE]), st.none()),
        *(st.tuples(st.just(kind), values) for kind, values in fields.items()),
    )


def structs_of(member: st.SearchStrategy[tuple[int, Any]]) -> st.SearchStrategy[Fields]:
    return st.dictionaries(st.integers(1, 2**15 - 1) | st.integers(1, 40), member, max_size=3)


FOOTERS = structs_of(kinds_of(structs_of(kinds_of(st.just({})))))


@settings(max_examples=examples(60))
@given(FOOTERS)
def test_fields_come_back_as_they_were(fields: Fields) -> None:
    assert read_footer(pa.BufferReader(b"data" + footer_bytes(fields))) == fields


@pytest.mark.parametrize("count", [0, 14, 15, 16, 300])
@pytest.mark.parametrize("step", [1, 14, 15, 16])
def test_long_lists_and_far_fields_are_spelled_out(count: int, step: int) -> None:
    fields: Fields = {1: (I64, -1), 1 + step: (LIST, (I32, list(range(count))))}
    assert read_footer(pa.BufferReader(footer_bytes(fields))) == fields


def parquet(**settings: Any) -> bytes:
    sink = io.BytesIO()
    rows = pa.table(
        {"a": range(40), "s": [{"x": str(n), "y": [n]} for n in range(40)], "b": [n > 3 for n in range(40)]}
    )
    pq.write_table(rows, sink, row_group_size=2, **settings)
    return sink.getvalue()


@pytest.mark.parametrize(
    "written", [{}, {"store_schema": False}, {"write_page_index": True}, {"version": "1.0", "compression": "zstd"}]
)
def test_a_footer_of_arrows_is_the_same_bytes(written: dict[str, Any]) -> None:
    data = parquet(**written)
    again = footer_bytes(read_footer(pa.BufferReader(data)))
    assert data.endswith(again) and len(again) > 100


def test_a_changed_footer_is_what_readers_find() -> None:
    data = parquet()
    footer = read_footer(pa.BufferReader(data))
    before = len(footer_bytes(footer))
    # Field 2 of FileMetaData lists schema elements, whose field 4 is the name.
    element = next(each for each in structs(footer, 2) if each[4][1] == b"a")
    element[4] = (BINARY, b"renamed")
    changed = data[:-before] + footer_bytes(footer)
    assert pq.ParquetFile(pa.BufferReader(changed)).schema.names[0] == "renamed"


def test_a_type_that_footers_do_not_use_is_named() -> None:
    with pytest.raises(ValueError, match="Parquet footer: expected a type that footers use, found 11"):
        read_footer(pa.BufferReader(bytes([0x10 | MAP, 0]) + b"\x02\0\0\0PAR1"))
