"""Rows in buckets of a sort order: no row of a bucket sorts after one of a higher bucket, however skewed they are."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.clustering.order_ranges import OrderRanges
from nightkeep.clustering.ranges import splitters
from nightkeep.kernels.sort_keys import SortColumn, sort_keys


@dataclass(frozen=True)
class ByBoth:
    tops: Sequence[str] = ("a", "b")

    def keys(self, rows: pa.Table) -> pa.Table:
        first = SortColumn(rows.column("a"), descending=True, nulls_first=False)
        return sort_keys([first, SortColumn(rows.column("b"), descending=False, nulls_first=True)])


@pytest.mark.parametrize("seed", range(20))
def test_buckets_follow_each_other(seed: int) -> None:
    chance = random.Random(seed)
    common = chance.random()
    pairs = [(chance.randrange(3), None if chance.random() < 0.2 else str(chance.randrange(40))) for _ in range(500)]
    pairs = [(1, "7") if chance.random() < common else pair for pair in pairs]
    rows = pa.table({"a": [pair[0] for pair in pairs], "b": [pair[1] for pair in pairs]})
    some = rows.take(pa.array(chance.sample(range(500), chance.choice([0, 5, 100])), pa.int64()))
    ranges = OrderRanges.of(ByBoth(), [some])
    sample = some if some.num_rows else rows
    between = splitters(ranges.keys(sample, 0), 6)
    keys = ranges.keys(rows, 0)
    buckets = ranges.buckets(keys, between, 0)
    order = ranges.order(rows, keys)
    place = np.empty(500, np.int64)
    ordered = [pairs[row] for row in order]
    ranks = np.cumsum([0, *(one != other for one, other in itertools.pairwise(ordered))])
    place[order] = ranks
    for bucket in range(5):
        lower, upper = place[buckets <= bucket], place[buckets > bucket]
        assert not len(lower) or not len(upper) or lower.max() <= upper.min()


def test_a_value_of_most_rows_fills_several_buckets() -> None:
    rows = pa.table({"a": [1] * 900 + [2] * 100, "b": ["x"] * 1000})
    ranges = OrderRanges.of(ByBoth(), [rows])
    keys = ranges.keys(rows, 0)
    buckets = ranges.buckets(keys, splitters(keys, 10), 0)
    assert np.bincount(buckets, minlength=10).max() <= 200
