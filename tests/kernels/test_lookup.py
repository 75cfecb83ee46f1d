"""find_keys against a dict of keys, for every type a Paimon key may have."""

import functools
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES, order_key
from tests.support.examples import examples

from nightkeep.kernels.lookup import find_keys


def sorted_keys(keys: list[tuple]) -> list[tuple]:
    unique = {tuple(map(order_key, key)): key for key in keys}
    return [unique[order] for order in sorted(unique)]


def table(kinds: list[pa.DataType], keys: list[tuple], chunk: int | None = None) -> pa.Table:
    columns = [pa.array([key[i] for key in keys], kind) for i, kind in enumerate(kinds)]
    whole = pa.table({f"k{i}": column for i, column in enumerate(columns)})
    if chunk is None or not keys:
        return whole
    return pa.concat_tables([whole.slice(at, chunk) for at in range(0, len(keys), chunk)])


def twin(wanted: list[tuple], held: list[tuple]) -> list[int]:
    place = {tuple(map(order_key, key)): row for row, key in enumerate(held)}
    return [place.get(tuple(map(order_key, key)), -1) for key in wanted]


@st.composite
def key_sets(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple], list[tuple]]:
    kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=4))
    key = st.tuples(*(KEY_TYPES[kind] for kind in kinds))
    shared, wanted, held = (draw(st.lists(key, max_size=12)) for _ in range(3))
    return kinds, sorted_keys(shared + wanted), sorted_keys(shared + held)


@settings(max_examples=examples(400))
@given(key_sets(), st.sampled_from([None, 1, 3]))
def test_agrees_with_a_dict_of_keys(sets: tuple, chunk: int | None) -> None:
    kinds, wanted, held = sets
    found = find_keys(table(kinds, wanted), table(kinds, held, chunk))
    assert found.dtype == np.int64
    assert found.tolist() == twin(wanted, held)


@given(key_sets(), st.integers(0, 5), st.integers(0, 5))
def test_slices_are_read_from_their_own_first_row(sets: tuple, skip_wanted: int, skip_held: int) -> None:
    kinds, wanted, held = sets
    found = find_keys(table(kinds, wanted).slice(skip_wanted), table(kinds, held).slice(skip_held))
    assert found.tolist() == twin(wanted[skip_wanted:], held[skip_held:])


@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_every_type_orders_like_the_twin(kind: pa.DataType) -> None:
    @settings(max_examples=examples(40))
    @given(st.lists(st.tuples(KEY_TYPES[kind]), min_size=2, max_size=8))
    def check(keys: list[tuple]) -> None:
        ordered = sorted_keys(keys)
        assert find_keys(table([kind], ordered), table([kind], ordered)).tolist() == list(range(len(ordered)))

    check()


@pytest.mark.parametrize("count", [1, 7, 100_000])
def test_long_shared_prefixes_and_deep_ties(count: int) -> None:
    held = [("tenant-0000000042", f"order-{n // 10:020}", n % 10) for n in range(count)]
    wanted = [*held[:: max(1, count // 100)], ("tenant-0000000043", "order", 1)]
    kinds = [pa.string(), pa.string(), pa.int64()]
    assert find_keys(table(kinds, wanted), table(kinds, held, 30_000)).tolist() == twin(wanted, held)


def test_more_wanted_than_held() -> None:
    wanted, held = [(n,) for n in range(1000)], [(n,) for n in range(-5, 1005, 7)]
    assert find_keys(table([pa.int64()], wanted), table([pa.int64()], held)).tolist() == twin(wanted, held)


def test_nan_payloads_are_one_key() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    assert find_keys(table([pa.float64()], [(other_nan,)]), table([pa.float64()], [(math.nan,)])).tolist() == [0]


def test_dictionary_columns_are_read_as_their_values() -> None:
    held = pa.table({"k0": pa.array(["b", "a", "b"]).dictionary_encode().take(pa.array([1, 0]))})
    assert find_keys(pa.table({"k0": pa.array(["b"])}).cast(held.schema), held).tolist() == [1]


TWO_COLUMNS = functools.partial(table, [pa.string(), pa.int64()])


@pytest.mark.parametrize(
    ("wanted", "held", "message"),
    [
        ([("a", 1)], [("b", 1), ("a", 2)], r"held keys \(k0, k1\): row 1 sorts before row 0"),
        ([("a", 1)], [("a", 2), ("b", 3), ("b", 2)], r"held keys \(k0, k1\): row 2 sorts before row 1"),
        ([("a", 1)], [("a", 2), ("b", 3), ("b", 3)], r"held keys \(k0, k1\): rows 1 and 2 are equal"),
        ([("b", 1), ("a", 2)], [("a", 2)], r"wanted keys \(k0, k1\): row 1 sorts before row 0"),
        ([("a", None)], [("a", 2)], r"key column 'k1': 1 nulls, expected none"),
    ],
)
def test_what_breaks_the_contract_is_named(wanted: list[tuple], held: list[tuple], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_keys(TWO_COLUMNS(wanted), TWO_COLUMNS(held))


@given(key_sets(), st.randoms(use_true_random=False))
def test_unsorted_keys_never_answer(sets: tuple, random) -> None:
    kinds, wanted, held = sets
    shuffled = random.sample(held, len(held))
    if list(map(repr, shuffled)) == list(map(repr, held)):
        return
    with pytest.raises(ValueError, match="sorts before"):
        find_keys(table(kinds, wanted), table(kinds, shuffled))


def test_a_prefix_of_the_ends_need_not_be_one_of_the_middle() -> None:
    held = pa.table({"k0": ["user-1", "aaaa-2", "user-3"]})
    with pytest.raises(ValueError, match=r"held keys .*: row 1 sorts before row 0"):
        find_keys(pa.table({"k0": ["user-2"]}), held)


def test_types_must_agree_and_be_keys() -> None:
    with pytest.raises(ValueError, match="key column 'k0': type int32, expected int64"):
        find_keys(table([pa.int64()], [(1,)]), table([pa.int32()], [(1,)]))
    with pytest.raises(ValueError, match=r"key column 'k0': type list"):
        find_keys(table([pa.list_(pa.int64())], [([1],)]), table([pa.list_(pa.int64())], [([1],)]))
