"""Range ids against counting in Fractions, and against bisection of every row."""

import bisect
import math
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES
from tests.support.examples import examples

from nightkeep.kernels.ranks import RangeBounds, Sample, bounds_of, noise, rank_ids

KINDS = [*KEY_TYPES, pa.uint64(), pa.dictionary(pa.int32(), pa.string())]
MANY = 20_000


def spark_key(value: object) -> tuple:
    """Spark's order of one value, nulls first, spelled out."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value + 0.0)
    return (1, value.encode() if isinstance(value, str) else value)


def plain(column: pa.ChunkedArray | pa.Array) -> list:
    """Timestamps as numbers: Python has none for some."""
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def values_of(kind: pa.DataType) -> st.SearchStrategy:
    if kind == pa.uint64():
        return st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**63, 2**64 - 1]))
    return KEY_TYPES[kind.value_type if pa.types.is_dictionary(kind) else kind]


@st.composite
def columns(draw: st.DrawFn, kind: pa.DataType) -> pa.ChunkedArray:
    pool = draw(st.lists(values_of(kind), min_size=1, max_size=10))
    values = draw(st.lists(st.one_of(st.none(), st.sampled_from(pool)), max_size=30))
    start, size = draw(st.integers(0, 3)), draw(st.sampled_from([1, 4, 100]))
    whole = pa.array(values, kind)
    return pa.chunked_array([whole.slice(at, size) for at in range(start, len(values), size)], kind)


samples = st.sampled_from(KINDS).flatmap(columns)
pairs = st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(columns(kind), columns(kind)))


def cut(values: list, range_ids: int) -> list[list[tuple]]:
    """The values of each range."""
    counts = Counter(spark_key(value) for value in values if value is not None)
    slots = range_ids - (None in values)
    total, before = Fraction(sum(counts.values())), Fraction(0)
    ranges: dict[int, list[tuple]] = {}
    for key, count in sorted(counts.items()):
        slot = min(slots - 1, math.floor((before + Fraction(count, 2)) * slots / total))
        ranges.setdefault(slot, []).append(key)
        before += count
    return list(ranges.values())


@settings(max_examples=examples(400))
@given(samples, st.integers(2, 40), st.sampled_from([1, 4]))
def test_ranges_are_those_of_counting(column: pa.ChunkedArray, range_ids: int, times: int) -> None:
    values = plain(column)
    bounds = bounds_of([Sample(column, times * len(column))], range_ids)
    ranges = cut(values, range_ids)
    assert [spark_key(value) for value in plain(bounds.values)] == [keys[-1] for keys in ranges[:-1]]
    assert len(bounds.ids) == len(bounds.values) + 1 <= range_ids
    assert bounds.bits == math.ceil(math.log2(range_ids))
    assert (np.diff(bounds.ids.astype(int)) > 0).all()
    assert (None in values) <= bounds.ids[0] and bounds.ids[-1] < 2**bounds.bits


@settings(max_examples=examples(200))
@given(pairs, st.integers(2, 40))
def test_an_id_shows_the_range_of_a_row(pair: tuple[pa.ChunkedArray, pa.ChunkedArray], range_ids: int) -> None:
    bounds = bounds_of([Sample(pair[0], len(pair[0]))], range_ids)
    ends = [spark_key(value) for value in plain(bounds.values)]
    for column in pair:
        keys = [spark_key(value) for value in plain(column)]
        expected = [0 if key == (0,) else int(bounds.ids[bisect.bisect_left(ends, key)]) for key in keys]
        ids = rank_ids(bounds, column)
        assert ids.dtype == np.uint32
        assert ids.tolist() == expected
        assert [int(rank_ids(bounds, column.slice(i, 1))[0]) for i in range(0, len(column), 7)] == expected[::7]
        assert [rank for _, rank in sorted(zip(keys, expected, strict=True))] == sorted(expected)


DRAWN: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "any int64": lambda pick: pick.integers(-(2**63), 2**63 - 1, MANY),
    "any uint64": lambda pick: pick.integers(0, 2**64 - 1, MANY, np.uint64),
    "int32 of few": lambda pick: pick.integers(0, 7, MANY).astype(np.int32),
    "int8": lambda pick: pick.integers(-128, 127, MANY).astype(np.int8),
    "ascending": lambda _: np.arange(MANY) + 10**18,
    "skewed": lambda pick: pick.zipf(1.2, MANY),
    "normal": lambda pick: pick.normal(size=MANY),
    "float32": lambda pick: pick.normal(size=MANY).astype(np.float32),
    "huge": lambda pick: pick.choice([-1e308, 1e308], MANY) * pick.random(MANY),
    "tiny": lambda pick: pick.integers(0, 1000, MANY) * 5e-324,
    "heavy tail": lambda pick: pick.pareto(0.2, MANY),
    "infinite": lambda pick: np.where(
        pick.random(MANY) < 0.1, pick.choice([np.inf, -np.inf, np.nan], MANY), pick.random(MANY)
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_many_numbers_are_placed_as_by_binary_search(name: str) -> None:
    values = DRAWN[name](np.random.default_rng(3))
    bounds = bounds_of([Sample(pa.array(values[::7]), MANY)], 500)
    expected = bounds.ids[np.searchsorted(bounds.values.to_numpy(), values)]
    np.testing.assert_array_equal(rank_ids(bounds, pa.array(values)), expected)


def texts(prefix: str, width: int) -> pa.Array:
    numbers = pa.array(np.random.default_rng(4).integers(0, 10**9, MANY)).cast(pa.string())
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(numbers, width, "0"), "")


STRAYS = pa.array(["", "a", "common-prefix-", "common-prefix-0000000000", "\U0001f600"])
TEXTS = {
    "short": texts("", 9),
    "common prefix": texts("common-prefix--", 9),
    "with strays": pa.concat_arrays([texts("common-prefix--", 9), STRAYS]),
    "two hosts": pa.concat_arrays([texts("https://one.example/item/", 9), texts("https://two.example/item/", 19)]),
    "prefixes of each other": pa.array(["x" * (i % 300) for i in range(MANY)]),
    "zeros": pa.array(["x" + "\0" * (i % 30) for i in range(MANY)]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_many_strings_are_placed_as_by_binary_search(name: str) -> None:
    values = TEXTS[name]
    bounds = bounds_of([Sample(values.take(pa.array(np.arange(0, len(values), 7))), len(values))])
    ends = [value.encode() for value in bounds.values.to_pylist()]
    places = [bisect.bisect_left(ends, value.encode()) for value in values.to_pylist()]
    assert rank_ids(bounds, values).tolist() == bounds.ids[places].tolist()


def test_two_values_of_as_many_rows_differ_in_the_highest_bit() -> None:
    column = pa.array([False, True] * 50)
    bounds = bounds_of([Sample(column, 100)])
    assert {int(id) >> (bounds.bits - 1) for id in rank_ids(bounds, column[:1])} == {0}
    assert {int(id) >> (bounds.bits - 1) for id in rank_ids(bounds, column[1:2])} == {1}


@given(st.integers(0, 5), st.integers(2, 8))
def test_a_heavy_value_has_a_range_of_its_own(place: int, slots: int) -> None:
    column = pa.array([*range(100), *[place * 20] * math.ceil(2 * 100 / (slots - 1) * slots)])
    ids = rank_ids(bounds_of([Sample(column, len(column))], slots * 8), column)
    assert set(ids[np.asarray(column) == place * 20]).isdisjoint(ids[np.asarray(column) != place * 20])


def test_nulls_take_no_ranges_from_the_values() -> None:
    values = list(range(100))
    bounds = bounds_of([Sample(pa.array([None] * 900 + values, pa.int64()), 1000)], 101)
    assert len(set(rank_ids(bounds, pa.array(values)))) == 100
    assert rank_ids(bounds, pa.array([None, 0], pa.int64())).tolist() == [0, 1]


def test_samples_count_for_the_rows_they_stand_for() -> None:
    small, large = pa.array(range(100)), pa.array(range(100, 200))
    bounds = bounds_of([Sample(small, 100), Sample(large, 300), Sample(large[:0], 0)], 4)
    assert bounds.values.to_pylist() == [99, 132, 166]


def test_a_sample_of_nulls_or_of_nothing_is_one_range() -> None:
    for column in (pa.array([], pa.string()), pa.array([None, None], pa.string())):
        bounds = bounds_of([Sample(column, len(column))])
        assert len(bounds.values) == 0
        assert len(set(rank_ids(bounds, pa.array(["a", "b"])))) == 1
        assert rank_ids(bounds, column).tolist() == [0] * len(column)


def test_a_column_older_than_a_type_change_is_cast() -> None:
    bounds = bounds_of([Sample(pa.array([1, 2, 3, 4], pa.int64()), 4)], 4)
    assert rank_ids(bounds, pa.array([4, 1], pa.int32())).tolist() == [3, 0]
    with pytest.raises(pa.ArrowInvalid, match="one"):
        rank_ids(bounds, pa.array(["one"]))


def test_a_type_without_an_order_is_refused() -> None:
    with pytest.raises(ValueError, match="type list"):
        bounds_of([Sample(pa.array([[1]]), 1)])
    with pytest.raises(ValueError, match="1 range ids, expected at least 2"):
        bounds_of([Sample(pa.array([1]), 1)], 1)


def test_bounds_cross_processes() -> None:
    bounds = bounds_of([Sample(TEXTS["short"], MANY)], 50)
    again: RangeBounds = pickle.loads(pickle.dumps(bounds))
    assert again.values.equals(bounds.values) and again.ids.tolist() == bounds.ids.tolist()
    assert len(pickle.dumps(bounds)) < 5000


@given(st.integers(-(2**70), 2**70), st.integers(0, 50), st.integers(0, 50))
def test_noise_of_a_row_depends_on_its_number_and_the_seed(seed: int, first: int, rows: int) -> None:
    assert noise(seed, rows, first).tolist() == noise(seed, first + rows)[first:].tolist()


def test_noise_is_even() -> None:
    counts = np.bincount(noise(5, 256 * 1000), minlength=256)
    assert counts.min() > 850 and counts.max() < 1150
    assert (noise(5, 1000) != noise(6, 1000)).mean() > 0.95
