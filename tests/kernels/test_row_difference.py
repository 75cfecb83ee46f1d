"""Differences of multisets: the twin counts rows in a Counter; batches of 1 and of all."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.row_difference import Hashes, RowDifference

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


def hashes(rows: list[tuple[int, int]]) -> Hashes:
    first, second = (np.array([row[lane] for row in rows], np.uint64) for lane in (0, 1))
    return first, second


def batches(rows: list[tuple[int, int]], size: int) -> list[list[tuple[int, int]]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


@settings(max_examples=examples(200))
@given(ROWS, ROWS, st.integers(1, 12))
def test_rows_that_the_other_side_lacks(after: list[tuple[int, int]], before: list[tuple[int, int]], size: int) -> None:
    difference = RowDifference(map(hashes, batches(after, size)), map(hashes, batches(before, size)))
    added, removed = Counter(after) - Counter(before), Counter(before) - Counter(after)
    assert bool(difference) == bool(added or removed)
    for rows, taken, wanted in ((after, difference.added, added), (before, difference.removed, removed)):
        found = [
            row
            for batch in batches(rows, size)
            for row, is_in in zip(batch, taken(hashes(batch)), strict=True)
            if is_in
        ]
        assert Counter(found) == wanted
    assert not difference


def test_nothing_differs_from_nothing() -> None:
    difference = RowDifference([], [])
    assert not difference
    assert difference.added(hashes([(1, 2)])).tolist() == [False]
