"""Hashes of rows: the twin mixes one row at a time in Python's integers, and asks Polars for one value at a time."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels import row_hash
from nightkeep.kernels.row_hash import hash_blocks

MASK = 2**64 - 1
BYTE_SEEDS = (0x3F84D5B5B5470917, 0x1B79ABFF7E6A1C4D)
# Seed, word of a null, word of a length, shifts, factors.
LANES = (
    (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D1, (30, 27, 31),
     (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)),
    (0x082EFA98EC4E6C89, 0x452821E638D01377, 0xBE5466CF34E90C6D, (33, 33, 33),
     (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)),
)  # fmt: skip


def mixed(state: int, word: int, lane: int) -> int:
    _, _, _, shifts, factors = LANES[lane]
    state = (state + word) & MASK
    for shift, factor in zip(shifts, factors, strict=False):
        state = (state ^ state >> shift) * factor & MASK
    return state ^ state >> shifts[-1]


def twin(row: Sequence[object], lane: int) -> int:
    state, null, *_ = LANES[lane]
    for value in row:
        match value:
            case None:
                state = mixed(state, null, lane)
            case int():
                state = mixed(state, value & MASK, lane)
            case bytes():
                state = mixed(state, pl.Series([value]).hash(seed=BYTE_SEEDS[lane]).item(), lane)
    return state


def hashed(columns: Sequence["pa.Array[object]"]) -> list[tuple[int, int]]:
    rows = len(columns[0])
    return [(int(a), int(b)) for left, right in hash_blocks(columns, rows) for a, b in zip(left, right, strict=True)]


NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(NUMBERS, st.none() | st.binary(max_size=20), st.none() | st.integers(0, 255)), max_size=6)


@settings(max_examples=examples(100))
@given(ROWS, st.integers(0, 2), st.sampled_from([1, 2, 1 << 15]))
def test_a_row_is_mixed_column_by_column(rows: list[tuple[object, ...]], skipped: int, block: int) -> None:
    kinds = (pa.int64(), pa.binary(), pa.uint8())
    # Rows before a slice are not the slice's.
    padded = [(1, b"before the slice", None)] * skipped + rows
    columns = [pa.array([row[at] for row in padded], kind).slice(skipped) for at, kind in enumerate(kinds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_hash, "_BLOCK_ROWS", block)
        assert hashed(columns) == [(twin(row, 0), twin(row, 1)) for row in rows]


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
        (pa.struct([("x", pa.int64()), ("y", pa.int64())]),
         [{"x": 1, "y": None}, {"x": None, "y": 1}, {"x": None, "y": None}, None, {"x": 1, "y": 1}]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("b", 1)], [("a", 2)], [], None, [("a", 1), ("b", 1)]]),
        (pa.decimal128(38, 0), [0, 1, -1, 2**64, None]),
    ],
)  # fmt: skip
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
