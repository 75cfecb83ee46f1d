"""How large files are and should be: at each edge, and within the bounds that the docstrings state."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.sizing import (
    Sizes,
    batch_rows,
    file_count,
    is_gone,
    live_bytes,
    row_group_bytes,
    total_live_bytes,
)
from nightkeep.clustering.tuning import LEAST_BATCH_ROWS, MOST_BATCH_ROWS
from nightkeep.model import Clustering, Curve
from nightkeep.model.file_columns import columns_of


@dataclass(frozen=True, slots=True)
class Sized:
    bytes: int = 1000
    rows: int | None = 100
    deleted_rows: int = 0
    deletes: int = 0
    name: str = "file"


SIZES = Sizes(1000, 750, 0.3, large=1800)


@pytest.mark.parametrize(
    ("file", "worn"),
    [
        (Sized(deleted_rows=30, deletes=1), False),
        (Sized(deleted_rows=31, deletes=1), True),
        (Sized(deleted_rows=31), False),
        (Sized(rows=None, deletes=1), True),
        (Sized(rows=None), False),
        (Sized(rows=0, deletes=1), False),
    ],
)
def test_a_file_is_worn_above_the_ratio(file: Sized, worn: bool) -> None:
    assert SIZES.is_worn(file) is worn


def test_small_and_large_are_beyond_their_bounds() -> None:
    columns = columns_of([Sized(size) for size in (749, 750, 1800, 1801, 1 << 60)])
    assert SIZES.are_small(columns).tolist() == [True, False, False, False, False]
    assert SIZES.are_large(columns).tolist() == [False, False, False, True, True]
    assert not Sizes(1000, 750, 0.3).are_large(columns).any()


def test_a_file_without_rows_is_gone_by_its_metadata_only() -> None:
    assert is_gone(Sized(rows=5, deleted_rows=5)) and is_gone(Sized(rows=0))
    assert not is_gone(Sized(rows=5, deleted_rows=4)) and not is_gone(Sized(rows=None))


@given(st.integers(0, 10**12), st.integers(0, 10**6), st.integers(0, 10**6))
def test_live_bytes_are_the_share_of_live_rows(size: int, rows: int, deleted: int) -> None:
    deleted = min(deleted, rows)
    found = live_bytes(Sized(size, rows, deleted))
    assert found == (size if not deleted else size * (rows - deleted) // rows)
    assert total_live_bytes([Sized(size, rows, deleted), Sized(7, None)]) == found + 7


@given(st.integers(0, 10**12), st.integers(1, 10**10))
def test_as_many_files_as_come_nearest_to_the_target(size: int, target: int) -> None:
    count = file_count(size, target)
    assert count >= 1 and (count == 1 or abs(size - count * target) * 2 <= target)
    assert size * 2 < 3 * target or count >= 2


@given(st.integers(0, 10**12), st.integers(0, 10**9))
def test_batches_stay_within_their_bounds(size: int, rows: int) -> None:
    assert LEAST_BATCH_ROWS <= batch_rows(size, rows) <= MOST_BATCH_ROWS


def test_wide_rows_are_read_in_smaller_batches() -> None:
    assert batch_rows(1 << 30, 1 << 20) == 4096
    assert batch_rows(1 << 31, 1 << 20) == 2048


@pytest.mark.parametrize(
    ("target", "group"),
    [(1 << 30, 8 << 20), (128 << 20, 8 << 20), (64 << 20, 4 << 20), (512 << 10, 32 << 10), (1000, 32 << 10)],
)
def test_a_clustered_file_has_sixteen_row_groups_or_more_of_eight_mebibytes(target: int, group: int) -> None:
    assert row_group_bytes(target) == group
    assert FileLayout(target, Clustering(("a",), Curve.HILBERT)).group_bytes == group
    assert FileLayout(target).group_bytes is None
