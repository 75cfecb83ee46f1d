"""Words of encoded keys compare as the keys do: the twin compares the values one by one."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES, order_key
from tests.support.examples import examples

from nightkeep.kernels import key_order
from nightkeep.kernels.key_order import EncodedKeys, encode, require_ascending

Key = tuple[object, ...]


def table(kinds: list[pa.DataType], keys: list[Key]) -> pa.Table:
    return pa.table({f"k{i}": pa.array([key[i] for key in keys], kind) for i, kind in enumerate(kinds)})


def spelled(keys: EncodedKeys) -> list[tuple[int, ...]]:
    rows = range(len(keys.leading))
    return list(zip(*([int(keys.word(k, [row])[0]) for row in rows] for k in range(len(keys.words))), strict=True))  # type: ignore[arg-type]


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[Key], list[Key]]:
    kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=3))
    key = st.tuples(*(KEY_TYPES[kind] for kind in kinds))
    shared, left, right = (draw(st.lists(key, max_size=3)) for _ in range(3))
    return kinds, shared + left, right + shared


@settings(max_examples=examples(100))
@given(two_tables())
def test_words_order_rows_of_all_tables_as_their_keys_do(sets: tuple[list[pa.DataType], list[Key], list[Key]]) -> None:
    kinds, left, right = sets
    encoded = encode(table(kinds, left), table(kinds, right))
    words = [each for side in encoded for each in spelled(side)]
    keys = [tuple(map(order_key, key)) for key in left + right]
    for one, its_words in zip(keys, words, strict=True):
        for other, other_words in zip(keys, words, strict=True):
            assert (one < other, one == other) == (its_words < other_words, its_words == other_words)


@settings(max_examples=examples(60))
@given(two_tables(), st.booleans())
def test_ascending_is_strict(sets: tuple[list[pa.DataType], list[Key], list[Key]], in_order: bool) -> None:
    kinds, keys, _ = sets
    if in_order:
        keys = [key for _, key in sorted({tuple(map(order_key, key)): key for key in keys}.items())]
    orders = [tuple(map(order_key, key)) for key in keys]
    (encoded,) = encode(table(kinds, keys))
    broken = [row for row, (a, b) in enumerate(pairwise(orders)) if a >= b]  # type: ignore[operator]
    if not broken:
        require_ascending(encoded, "keys")
        return
    with pytest.raises(ValueError, match=r"^keys: row") as failure:
        require_ascending(encoded, "keys")
    said = str(failure.value)
    smaller = "expected after" in said
    assert any(
        f"row {row + 1} sorts before row {row}" in said if smaller else f"rows {row} and {row + 1} are equal" in said
        for row in broken
    )


def test_narrow_columns_share_one_word_and_wide_ones_go_on_in_the_next() -> None:
    narrow = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array([0, 9], pa.int32())})
    assert len(encode(narrow)[0].words) == 1
    wide = pa.table({"a": pa.array([-(2**63), 2**63 - 1], pa.int64()), "b": pa.array([0, 9], pa.int32())})
    assert len(encode(wide)[0].words) == 2


def test_blocks_change_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "_BLOCK_ROWS", 3)
    rows = pa.table({"a": pa.array(range(10)), "b": pa.array([f"b{n}" for n in range(10)])})
    assert spelled(encode(rows)[0]) == [(n << 8 | ord(str(n)),) for n in range(10)]


@pytest.mark.parametrize(
    ("kind", "nans"),
    [("<f4", [0x7FC00000, 0xFFC00000, 0x7F800001]), ("<f8", [0x7FF8 << 48, 0xFFF8 << 48, 0x7FF0 << 48 | 1])],
)
def test_every_nan_is_equal_and_last(kind: str, nans: list[int]) -> None:
    bits = np.array([*nans, 0], np.dtype(kind.replace("f", "u"))).view(kind)
    bits[-1] = np.inf
    *words, infinity = spelled(encode(pa.table({"a": bits}))[0])
    assert len(set(words)) == 1 and words[0] > infinity
