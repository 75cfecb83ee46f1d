"""Places along a curve, buckets between them and rows in order: twins count and sort in Python."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.clustering import ranges
from nightkeep.clustering.ranges import Ranges, buckets_of, in_order, splitters
from nightkeep.model import Clustering, Curve

ONE, TWO = Clustering(("a",), Curve.Z), Clustering(("a", "b"), Curve.Z)
VALUES = st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=20)


def words(values: list[int]) -> "np.ndarray":
    return np.array(values, np.uint64)


@settings(max_examples=examples(60))
@given(VALUES)
def test_one_column_is_ordered_by_value_with_nulls_first(values: list[int | None]) -> None:
    rows = pa.table({"a": pa.array(values, pa.int64())})
    cut = Ranges.of(ONE, (("a",),), [(rows, len(values))])
    keys = cut.keys(rows, 0)
    ordered = rows.take(cut.order(rows, keys)).column("a").to_pylist()
    assert ordered == sorted(values, key=lambda value: (value is not None, value or 0))
    # Places never contradict values, wherever rows are met.
    by_place = [value for _, value in sorted(zip(keys.tolist(), values, strict=True), key=lambda pair: pair[0])]
    assert [value is None for value in by_place] == sorted((value is None for value in values), reverse=True)


@settings(max_examples=examples(40))
@given(VALUES, st.integers(1, 7))
def test_a_row_has_one_place_in_whatever_batch_it_comes(values: list[int | None], step: int) -> None:
    rows = pa.table({"a": pa.array(values, pa.int64()), "b": pa.array(values[::-1], pa.int64())})
    cut = Ranges.of(TWO, (("a",), ("b",)), [(rows, len(values))])
    whole = cut.keys(rows, 0).tolist()
    parts = [cut.keys(rows.slice(at, step), at).tolist() for at in range(0, len(values), step)]
    assert [key for part in parts for key in part] == whole


def test_noise_spreads_rows_of_one_place_by_their_number() -> None:
    noisy = Clustering(("a", "b"), Curve.Z, noise=True)
    rows = pa.table({"a": [1] * 50, "b": [1] * 50})
    cut = Ranges.of(noisy, (("a",), ("b",)), [(rows, 50)])
    keys = cut.keys(rows, 0)
    assert len(set(keys.tolist())) > 20 and len({key >> 8 for key in keys.tolist()}) == 1
    assert cut.keys(rows.slice(10), 10).tolist() == keys[10:].tolist()


@settings(max_examples=examples(60))
@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 6), st.integers(0, 9))
def test_buckets_ascend_with_places_and_take_their_share(keys: list[int], count: int, first_row: int) -> None:
    between = splitters(words(keys), count)
    assert between.tolist() == [sorted(keys)[place * len(keys) // count] for place in range(1, count)]
    found = buckets_of(words(keys), between, first_row).tolist()
    for key, bucket in zip(keys, found, strict=True):
        below = sum(end < key for end in between.tolist())
        assert below <= bucket <= sum(end <= key for end in between.tolist())
    for one, bucket in zip(keys, found, strict=True):
        assert all(bucket <= other for key, other in zip(keys, found, strict=True) if key > one)


def test_a_place_that_fills_several_buckets_is_dealt_to_them_in_turn() -> None:
    keys, between = words([5] * 7), words([5, 5])
    assert buckets_of(keys, between, 0).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert buckets_of(keys, between, 4).tolist() == [1, 2, 0, 1, 2, 0, 1]


def test_rows_in_order_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"a": pa.array(range(10), pa.int64())})
    monkeypatch.setattr(ranges, "CHUNK_BYTES", 24)
    chunks = [chunk.column("a").to_pylist() for chunk in in_order(rows, np.arange(10)[::-1])]
    assert chunks == [[9, 8, 7], [6, 5, 4], [3, 2, 1], [0]]
    assert list(in_order(rows.slice(0, 0), np.arange(0))) == []
