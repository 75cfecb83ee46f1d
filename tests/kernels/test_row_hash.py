"""Hashes of rows: the twin takes in one value at a time in Python's integers, and asks Polars for the hash of each."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels import flat_hash
from nightkeep.kernels.row_hash import hash_blocks

MASK = 2**64 - 1
SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344)
MULTIPLE = 6364136223846793005
GOLDEN = 0x9E3779B9


def folded(left: int, right: int) -> int:
    """The two halves of the product, by exclusive or."""
    product = left * right
    return product & MASK ^ product >> 64


def with_number(state: int, word: int) -> int:
    """How Polars takes in a number."""
    return folded(word ^ folded(state, MULTIPLE), MULTIPLE)


def with_bytes(state: int, word: int) -> int:
    """How Polars takes in bytes."""
    return word ^ (state + GOLDEN + (word << 6) + (state >> 2)) & MASK


def twin(row: Sequence[object], kinds: Sequence[pa.DataType], seed: int) -> int:
    state: int | None = None
    numbers = [*kinds, pa.uint8()] if kinds[-1] == pa.binary() else kinds
    for value, kind in zip_longest(row, numbers):
        dtype = pl.Binary if kind == pa.binary() else pl.UInt64
        word = pl.Series([value & MASK if isinstance(value, int) else value], dtype=dtype).hash(seed=seed).item()
        taken_in = with_bytes if kind == pa.binary() else with_number
        state = word if state is None else taken_in(state, word)
    assert state is not None
    return state


def hashed(columns: Sequence["pa.Array[object]"]) -> list[tuple[int, int]]:
    rows = len(columns[0])
    return [(int(a), int(b)) for left, right in hash_blocks(columns, rows) for a, b in zip(left, right, strict=True)]


NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(NUMBERS, st.none() | st.binary(max_size=20), st.none() | st.integers(0, 255)), max_size=6)
KINDS = (pa.int64(), pa.binary(), pa.uint8())


@settings(max_examples=examples(100))
@given(ROWS, st.permutations(range(3)), st.integers(0, 2), st.sampled_from([1, 2, 1 << 15]))
def test_a_row_takes_in_one_column_after_the_other(
    rows: list[tuple[object, ...]], places: list[int], skipped: int, block: int
) -> None:
    kinds = [KINDS[place] for place in places]
    chosen = [tuple(row[place] for place in places) for row in rows]
    # Rows before a slice are not the slice's.
    padded = [tuple((1, b"before the slice", None)[place] for place in places)] * skipped + chosen
    columns = [pa.array([row[at] for row in padded], kind).slice(skipped) for at, kind in enumerate(kinds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_hash, "_BLOCK_ROWS", block)
        assert hashed(columns) == [tuple(twin(row, kinds, seed) for seed in SEEDS) for row in chosen]


def test_sums_detect_rows_that_swapped_values() -> None:
    """Of texts alone too, which Polars takes in by additions."""
    texts = [f"text {number}" for number in range(200)]
    for last in (pa.array(texts), pa.array(range(200))):
        left, right = np.repeat(np.arange(200), 200), np.tile(np.arange(200), 200)
        columns = [pa.array(texts).take(pa.array(left)), last.take(pa.array(right))]
        for lane in map(np.concatenate, zip(*hash_blocks(columns, 40_000), strict=True)):
            grid = lane.reshape(200, 200)
            swapped = grid[:-1, :-1] + grid[1:, 1:] - grid[:-1, 1:] - grid[1:, :-1]
            assert swapped.all()
            assert len(np.unique(grid)) == grid.size


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (pa.string(), pa.large_string()),
        (pa.string(), pa.string_view()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.binary(), pa.large_binary()),
        (pa.binary(3), pa.binary()),
        (pa.list_(pa.string()), pa.large_list(pa.string())),
        (pa.list_(pa.int64(), 2), pa.list_(pa.int64())),
    ],
)
def test_equal_values_hash_equally_in_any_encoding(kind: pa.DataType, other: pa.DataType) -> None:
    texts = ["abc", "", None, "a longer text"] if pa.types.is_string(kind) else [b"abc", None, b"xyz"]
    values: list[object] = [["a"], [], None, ["b", None]] if pa.types.is_list(kind) else list(texts)
    if pa.types.is_fixed_size_list(kind):
        values = [[1, 2], None, [2, 1]]
    plain = pa.array(values, kind)
    assert hashed([plain]) == hashed([plain.cast(other)])
    assert len(set(hashed([plain]))) == len(values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.int64()), [[1, 2], [2, 1], [1], [], None, [None], [1, 2, None], [0]]),
        (
            pa.struct([("x", pa.int64()), ("y", pa.int64())]),
            [{"x": 1, "y": None}, {"x": None, "y": 1}, {"x": None, "y": None}, None, {"x": 1, "y": 1}],
        ),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("b", 1)], [("a", 2)], [], None, [("a", 1), ("b", 1)]]),
        (pa.decimal128(38, 0), [0, 1, -1, 2**64, None]),
    ],
)
def test_unequal_nested_values_hash_apart(kind: pa.DataType, values: list[object]) -> None:
    found = hashed([pa.array(values, kind)])
    assert len({first for first, _ in found}) == len({second for _, second in found}) == len(values)


def test_entries_of_a_map_have_no_order_and_items_of_a_list_do() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    one, other = hashed([pa.array([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], kind)])
    assert one == other


def test_a_sliced_list_hashes_as_a_list_of_its_own() -> None:
    whole = pa.array([[1], [2, 3], [], [4]], pa.list_(pa.int64()))
    assert hashed([whole.slice(1, 2)]) == hashed([pa.array([[2, 3], []], pa.list_(pa.int64()))])


def test_a_value_counts_by_its_column() -> None:
    left, right = pa.array([1]), pa.array([2])
    assert hashed([left, right]) != hashed([right, left])


def test_a_type_without_a_rule_is_named() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(ValueError, match=r"column type .*union.*, expected one whose values have a hash"):
        list(hash_blocks([union], 1))
