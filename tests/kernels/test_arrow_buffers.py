"""Buffers of columns against Python's bytes: words, spans and chunks."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.arrow_buffers import byte_spans, flagged_rows, is_bytes, leaf_values, one_array, words_at

CHUNKS = st.lists(st.lists(st.none() | st.binary(max_size=12), max_size=4), max_size=3)


@settings(max_examples=examples(80))
@given(st.binary(min_size=8, max_size=40), st.lists(st.integers(0, 60), max_size=8))
def test_a_word_is_eight_bytes_and_zeros_beyond_the_data(data: bytes, starts: list[int]) -> None:
    found = words_at(np.frombuffer(data, np.uint8), np.array(starts, np.int64))
    assert found.tolist() == [int.from_bytes(data[start : start + 8].ljust(8, b"\0"), "little") for start in starts]


@settings(max_examples=examples(80))
@given(CHUNKS, st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]), st.integers(0, 2))
def test_spans_are_the_bytes_of_each_row(chunks: list[list[bytes | None]], kind: pa.DataType, skipped: int) -> None:
    padding = [b"not of the column"] * skipped
    column = pa.chunked_array([pa.array(padding + chunk, kind).slice(skipped) for chunk in chunks], kind)
    array = one_array(column)
    assert array.to_pylist() == [value for chunk in chunks for value in chunk]
    data, starts, stops = byte_spans(array)
    assert len(data) >= 8
    spans = [data[a:b].tobytes() for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
    assert [span for span, there in zip(spans, array.is_valid().to_pylist(), strict=True) if there] == [
        value for value in array.to_pylist() if value is not None
    ]


def test_a_column_of_one_chunk_is_not_copied() -> None:
    chunk = pa.array([b"a", b"bc"])
    assert one_array(pa.chunked_array([chunk])).buffers()[2].address == chunk.buffers()[2].address  # type: ignore[union-attr]


def test_a_dictionary_becomes_its_values() -> None:
    column = pa.chunked_array([pa.array(["x", None, "x"]).dictionary_encode()])
    assert one_array(column).to_pylist() == ["x", None, "x"]
    assert one_array(pa.chunked_array([], pa.int32())).to_pylist() == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.string(), True),
        (pa.large_string(), True),
        (pa.string_view(), True),
        (pa.binary(), True),
        (pa.large_binary(), True),
        (pa.binary_view(), True),
        (pa.binary(4), True),
        (pa.int8(), False),
        (pa.decimal128(9, 2), False),
        (pa.list_(pa.string()), False),
    ],
)
def test_what_holds_bytes(kind: pa.DataType, expected: bool) -> None:
    assert is_bytes(kind) is expected


@settings(max_examples=examples(80))
@given(
    st.lists(st.none() | st.fixed_dictionaries({"x": st.none() | st.fixed_dictionaries({"y.z": st.integers(0, 9)})})),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_a_leaf_is_null_where_a_struct_above_it_is(rows: list[Any], size: int, skipped: int) -> None:
    kind = pa.struct([("x", pa.struct([("y.z", pa.int64())]))])
    chunks = [pa.array(rows[at : at + size], kind) for at in range(0, len(rows), size)]
    table = pa.table({"top": pa.chunked_array(chunks, kind)}).slice(skipped)
    expected = [None if row is None or row["x"] is None else row["x"]["y.z"] for row in rows[skipped:]]
    assert leaf_values(table, ("top", "x", "y.z")).to_pylist() == expected


@given(st.data())
def test_flagged_rows_keep_values_and_types(data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(
            st.tuples(st.none() | st.text(max_size=20), st.none() | st.binary(max_size=20), st.none() | st.booleans())
        )
    )
    flags = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    cut = data.draw(st.integers(0, len(rows)))
    kinds = (pa.string_view(), pa.binary_view(), pa.bool_())
    table = pa.table(
        {
            str(place): pa.chunked_array(
                [pa.array([row[place] for row in part], kind) for part in (rows[:cut], rows[cut:])]
            )
            for place, kind in enumerate(kinds)
        }
    )
    first = data.draw(st.integers(0, len(rows)))
    found = flagged_rows(table.slice(first), np.array(flags[first:], np.bool_))
    found.validate(full=True)
    assert found.schema == table.schema
    kept = [row for row, flag in zip(rows[first:], flags[first:], strict=True) if flag]
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == kept


def test_a_text_that_is_none_is_kept_as_it_is() -> None:
    bytes_of = pa.array([b"\xff\xfe and more than twelve bytes", b"\xff", b"fine"], pa.binary_view())
    text = pa.Array.from_buffers(pa.string_view(), 3, bytes_of.buffers(), 0)
    found = flagged_rows(pa.table({"text": text}), np.array([True, True, False]))
    assert found.column(0).type == pa.string_view() and found.num_rows == 2
    (chunk,) = found.column(0).chunks
    assert pa.Array.from_buffers(pa.binary_view(), 2, chunk.buffers(), 0).to_pylist() == bytes_of.to_pylist()[:2]
