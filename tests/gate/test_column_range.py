"""What a gate takes again of columns, folders and untouched units, against plain Python."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.gate.column_range import ColumnRange, leaf_values, watched
from nightkeep.gate.listing import listing_faults
from nightkeep.gate.untouched import stray_changes
from nightkeep.model import UnitKey
from nightkeep.storage import open_storage

NUMBERS = st.none() | st.floats(width=32)


@given(st.lists(st.lists(NUMBERS, max_size=4), max_size=4))
def test_a_range_of_chunks_is_that_of_all_values(chunks: list[list[float | None]]) -> None:
    seen = ColumnRange()
    for chunk in chunks:
        seen = seen.with_chunk(pa.chunked_array([pa.array(chunk, pa.float64())]))
    values = [value for chunk in chunks for value in chunk]
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    assert seen.nulls == values.count(None)
    assert seen.nans == len(values) - len(numbers) - seen.nulls
    if numbers:
        assert seen.least is not None and seen.greatest is not None
        assert (seen.least.as_py(), seen.greatest.as_py()) == (min(numbers), max(numbers))


@given(st.lists(st.lists(st.none() | st.text("aab\u20ac", max_size=15), max_size=4), max_size=4))
def test_a_range_of_views_is_that_of_plain_texts(chunks: list[list[str | None]]) -> None:
    plain = views = ColumnRange()
    for chunk in chunks:
        plain = plain.with_chunk(pa.chunked_array([pa.array(chunk, pa.string())]))
        views = views.with_chunk(pa.chunked_array([pa.array(chunk, pa.string_view())]))
    assert views == plain


@pytest.mark.parametrize("values", [[0.0, -0.0, 1.0], [-1.0, -0.0, 0.0], [float("inf"), float("-inf")], [1e308, 1e308]])
def test_ends_of_numbers_are_those_of_arrow(values: list[float]) -> None:
    for kind in (pa.float64(), pa.float32()):
        held = pa.array(values, pa.float64()).cast(kind, safe=False)
        seen, ends = ColumnRange().with_chunk(pa.chunked_array([held])), pc.min_max(held)
        assert seen.nans == 0
        assert [str(end) for end in (seen.least, seen.greatest)] == [str(ends["min"]), str(ends["max"])]


def test_nulls_are_counted_of_a_type_without_an_order() -> None:
    values = pa.chunked_array([pa.array([[1], None], pa.list_(pa.int8()))])
    assert ColumnRange().with_nulls(values).with_nulls(values) == ColumnRange(nulls=2)


def test_pieces_are_added_to_ranges_as_they_come() -> None:
    pieces = [(0, pa.table({"a": [3, None], "b": ["x", "y"]})), (2, pa.table({"a": [1], "b": ["z"]}))]
    seen = {("a",): ColumnRange()}
    assert list(watched(pieces, seen)) == pieces
    assert (seen["a",].nulls, str(seen["a",].least), str(seen["a",].greatest)) == (1, "1", "3")


def test_a_leaf_below_a_null_struct_is_null() -> None:
    rows: list[dict[str, Any]] = [{"a": {"b": 1}}, {"a": None}, {"a": {"b": None}}]
    assert leaf_values(pa.Table.from_pylist(rows), ("a", "b")).to_pylist() == [1, None, None]


def test_a_listing_reports_what_is_missing_or_of_another_size(tmp_path: Path) -> None:
    for name in ("a/one", "b/two"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("four")
    faults = listing_faults(open_storage(str(tmp_path)), {"a/one": 4, "b/two": 5, "c/three": 1}, source="the log")
    assert [*faults] == [
        "b/two: the log states 5 bytes, the folder has 4 bytes",
        "c/three: the log states 1 bytes, the folder has no such file",
    ]


def test_a_unit_that_nobody_worked_on_may_not_change() -> None:
    same, changed, gone, touched = (UnitKey(f"day={day}") for day in range(4))
    before, after = {same: 1, changed: 1, gone: 1, touched: 1}, {same: 1, changed: 2, touched: 2}
    faults = [*stray_changes(before, after, [touched], lambda left, right: left == right)]
    assert faults == [f"{key}: changed, though no unit of it was worked on" for key in (changed, gone)]
