"""What files show of the size of others: exact where size grows with rows, near for real files."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.clustering.file_bytes import FileBytes
from nightkeep.clustering.tuning import COLUMN_BYTES, MOST_COLUMN_BYTES

SIZES = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 40)), max_size=30)


def stored(rows: int) -> int:
    """The bytes of a real file of so many rows."""
    some = np.random.default_rng(rows)
    names = pa.array([f"device {number:05}" for number in some.integers(0, 300, rows)])
    table = pa.table({"id": some.integers(0, 1 << 40, rows), "name": names, "value": some.normal(size=rows)})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.tell()


@given(st.integers(0, 1000), st.integers(1, 500), st.lists(st.integers(1, 100_000), min_size=1, max_size=9))
def test_a_line_is_found(fixed: int, row: int, rows: list[int]) -> None:
    counts = [*rows, 2 * max(rows)] if max(rows) < 2 * min(rows) else rows
    found = FileBytes.of([(number, fixed + row * number) for number in counts], columns=1)
    assert found.size(sum(rows)) == pytest.approx(fixed + row * sum(rows), rel=1e-3, abs=1)


@given(SIZES, st.integers(0, 1000))
def test_files_together_are_as_large_as_they_are(sizes: Sequence[tuple[int, int]], columns: int) -> None:
    found = FileBytes.of(sizes, columns=columns)
    assert 0 <= found.fixed <= MOST_COLUMN_BYTES * columns and found.row >= 0
    if sum(rows for rows, _ in sizes):
        total = sum(size for _, size in sizes)
        assert found.size(sum(rows for rows, _ in sizes), len(sizes)) == pytest.approx(total, rel=1e-6, abs=1)


@given(SIZES, st.integers(0, 99), st.integers(0, 1 << 40), st.integers(1, 1 << 62))
def test_there_is_a_file(sizes: Sequence[tuple[int, int]], columns: int, rows: int, target: int) -> None:
    assert FileBytes.of(sizes, columns=columns).count(rows, target) >= 1


def test_files_of_equal_rows_show_nothing_and_a_column_takes_what_is_usual() -> None:
    assert FileBytes.of([(100, 5_000), (101, 5_050)], columns=3).fixed == 3 * COLUMN_BYTES
    assert FileBytes.of([(1, 400)], columns=3).fixed == 300
    assert FileBytes.of([], columns=3) == FileBytes(0.0, 0.0)


@pytest.mark.parametrize("rows", [[100] * 20, [50, 60, 400, 90, 1000], [20_000] * 3, [3, 5_000, 4_000]])
def test_merged_files_are_about_as_large_as_expected(rows: list[int]) -> None:
    found = FileBytes.of([(each, stored(each)) for each in rows], columns=3)
    assert found.size(sum(rows)) == pytest.approx(stored(sum(rows)), rel=0.25)


def test_small_targets_count_what_a_file_takes_without_rows() -> None:
    found = FileBytes(4_800, 21.4)
    assert found.count(7_205, 16 << 10) == 13 and found.count(7_205, 5_000) > 13
