"""Rows cut into row groups: all of them, in their order, of even size, and none beyond its bounds."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.kernels import row_groups
from nightkeep.kernels.row_groups import ChunkSource, FileLimit, with_bounds, with_dictionaries

sizes = st.lists(st.integers(0, 30), max_size=8)


def chunks_of(sizes: list[int]) -> list[pa.Table]:
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    return [pa.table({"n": range(start, start + size)}) for start, size in zip(starts, sizes, strict=True)]


@given(sizes, st.lists(st.integers(1, 40)))
def test_a_source_hands_out_every_row_once(sizes: list[int], wanted: list[int]) -> None:
    source, rows = ChunkSource(chunks_of(sizes)), list(range(sum(sizes)))

    for count in wanted:
        assert (source.row_bytes is None) == (not rows)
        if rows:
            assert source.take(count).column("n").to_pylist() == rows[:count]
            rows = rows[count:]


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 400), st.integers(1, 16))
def test_groups_of_a_file_by_rows_are_even(rows: int, most: int, group_bytes: int, row_bytes: int) -> None:
    limit, written, groups = FileLimit(None, rows, group_bytes), 0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_groups, "ROW_GROUP_ROWS", most)
        while count := limit.group_rows(row_bytes, None, size=0, written=written):
            groups.append(count)
            written += count

    largest = max(1, min(most, group_bytes // row_bytes))
    assert sum(groups) == rows
    assert len(groups) == -(-rows // largest)
    assert max(groups) <= largest
    assert max(groups) - min(groups) <= len(groups)


@given(st.integers(1, 2000), st.integers(1, 500), st.integers(1, 16))
def test_groups_are_no_larger_in_the_file_than_asked_for(rows: int, stored_bytes: int, row_bytes: int) -> None:
    """The first one is as many rows as fit uncompressed, as the size of a stored row is not known yet."""
    limit, written, stored = FileLimit(None, rows, stored_group_bytes=stored_bytes), 0, None
    while count := limit.group_rows(float(row_bytes), stored, size=0, written=written):
        stored_row = row_bytes if stored is None else stored
        assert count <= max(1, stored_bytes // stored_row)
        written, stored = written + count, row_bytes / 2
    assert written == rows


@given(st.integers(1, 10**6), st.integers(1, 100))
def test_a_file_by_bytes_ends_near_its_target(target: int, row_bytes: int) -> None:
    limit, written = FileLimit(target, None), 0
    while count := limit.group_rows(8.0, row_bytes, size=written * row_bytes, written=written):
        written += count

    assert written == 1 or 0.95 * target <= written * row_bytes < target + row_bytes


def test_there_is_one_limit() -> None:
    for limits in ((None, None), (1, 1), (0, None), (None, -1)):
        with pytest.raises(ValueError, match="expected one limit of 1 or more"):
            FileLimit(*limits)


def test_nothing_is_left_of_a_source_without_rows() -> None:
    assert FileLimit(None, 5).group_rows(ChunkSource([]).row_bytes, None, size=0, written=0) == 0


def test_columns_of_many_values_get_no_dictionary_and_floats_no_bounds() -> None:
    nested = pa.array([{"a": 1.0, "l": [1]}] * 4000, pa.struct([("a", pa.float64()), ("l", pa.list_(pa.int32()))]))
    pairs = pa.array([[("k", 1)]] * 4000, pa.map_(pa.string(), pa.float32()))
    table = pa.table({"many": range(4000), "few": [1, 2] * 2000, "s": nested, "m": pairs})

    leaves = ["s.a", "s.l.list.element", "m.key_value.key", "m.key_value.value"]
    assert with_dictionaries(table) == ["few", *leaves]
    assert with_bounds(table.schema) == ["many", "few", "s.l.list.element", "m.key_value.key"]
