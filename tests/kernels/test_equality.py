"""EqualityIndex against a dict of keys, for every type that Iceberg allows as an equality column."""

import datetime
import functools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels import equality
from nightkeep.kernels.equality import EqualityIndex

UTC = datetime.UTC
# Few values each: keys must meet.
KEY_TYPES: dict[pa.DataType, list] = {
    pa.bool_(): [False, True],
    pa.int32(): [0, 1, -1, 2**31 - 1, -(2**31)],
    pa.int64(): [0, 1, -1, 2**63 - 1, -(2**63), 2**32],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("1.10"), Decimal("-1.10")],
    pa.decimal128(38, 0): [Decimal(0), Decimal(2**64), Decimal(2**64 + 1), Decimal(-1)],
    pa.date32(): [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2026, 11, 1)],
    pa.time64("us"): [datetime.time(0), datetime.time(23, 59, 59, 999_999)],
    pa.timestamp("us"): [datetime.datetime(1970, 1, 1), datetime.datetime(2026, 11, 1, 1, 2, 3, 4)],
    pa.timestamp("us", "UTC"): [datetime.datetime(1970, 1, 1, tzinfo=UTC), datetime.datetime(1969, 1, 1, tzinfo=UTC)],
    pa.timestamp("ns"): [0, 1, 10**18 + 1],
    pa.string(): ["", "a", "a\0", "aaaaaaaa", "aaaaaaaab", "\u00e9", "a" * 40, "a" * 39 + "b"],
    pa.large_string(): ["", "x", "xyz" * 9],
    pa.binary(): [b"", b"\0", b"\0\0", b"12345678", b"123456789"],
    pa.binary(3): [b"abc", b"abd", b"\0\0\0"],
    pa.float32(): [0.0, -0.0, 1.5, float("nan"), float("-inf")],
    pa.float64(): [0.0, -0.0, 0.1, float("nan"), float("inf")],
    pa.uuid(): [bytes(16), b"0123456789abcdef", b"0123456789abcdeg"],
}
Rows = list[tuple]


def table(kinds: list[pa.DataType], keys: Rows, chunk: int | None = None) -> pa.Table:
    columns = [pa.array([key[i] for key in keys], kind) for i, kind in enumerate(kinds)]
    whole = pa.table({f"k{i}": column for i, column in enumerate(columns)})
    if chunk is None or not keys:
        return whole
    return pa.concat_tables([whole.slice(at, chunk) for at in range(0, len(keys), chunk)])


def twin(deletes: list[tuple[Rows, int]], rows: Rows, sequence: int) -> list[int]:
    newest: dict[str, int] = {}
    for keys, at in deletes:
        for key in map(repr, keys):
            newest[key] = max(newest.get(key, at), at)
    return [row for row, key in enumerate(map(repr, rows)) if key in newest and newest[key] > sequence]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Rows, int]], Rows]:
    kinds = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=3))
    key = st.tuples(*(st.one_of(st.none(), st.sampled_from(KEY_TYPES[kind])) for kind in kinds))
    rows = st.lists(key, max_size=12)
    deletes = draw(st.lists(st.tuples(rows, st.integers(1, 6)), min_size=1, max_size=4))
    return kinds, deletes, draw(rows)


def index(kinds: list[pa.DataType], deletes: list[tuple[Rows, int]], chunk: int | None = None) -> EqualityIndex:
    return EqualityIndex.of((table(kinds, keys, chunk), sequence) for keys, sequence in deletes)


@settings(max_examples=examples(400))
@given(histories(), st.integers(0, 7), st.sampled_from([None, 1, 3]))
def test_agrees_with_a_dict_of_keys(history: tuple, sequence: int, chunk: int | None) -> None:
    kinds, deletes, rows = history
    found = index(kinds, deletes, chunk).hidden(table(kinds, rows, chunk), sequence)
    assert found.dtype == np.int64
    assert found.tolist() == twin(deletes, rows, sequence)


@settings(max_examples=examples(200))
@given(histories(), st.integers(0, 7), st.integers(1, 3))
def test_a_hash_alone_decides_nothing(history: tuple, sequence: int, keep: int) -> None:
    kinds, deletes, rows = history
    hashed = equality.hash_blocks

    def colliding(columns, count):
        for left, right in hashed(columns, count):
            yield left >> np.uint64(64 - keep) << np.uint64(64 - keep), right

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equality, "hash_blocks", colliding)
        found = index(kinds, deletes).hidden(table(kinds, rows), sequence)
    assert found.tolist() == twin(deletes, rows, sequence)


@given(histories(), st.integers(0, 5), st.integers(0, 5))
def test_slices_are_read_from_their_own_first_row(history: tuple, skip_deleted: int, skip_rows: int) -> None:
    kinds, deletes, rows = history
    built = EqualityIndex.of((table(kinds, keys).slice(skip_deleted), sequence) for keys, sequence in deletes)
    found = built.hidden(table(kinds, rows).slice(skip_rows), 3)
    assert found.tolist() == twin([(keys[skip_deleted:], at) for keys, at in deletes], rows[skip_rows:], 3)


def test_many_keys_across_blocks_and_batches() -> None:
    random = np.random.default_rng(7)
    kinds = [pa.int64(), pa.string()]
    rows = [(int(n), f"customer-{n % 1000}") for n in random.integers(0, 50_000, 70_000)]
    deletes = [([(int(n), f"customer-{n % 999}") for n in random.integers(0, 50_000, 5_000)], at) for at in (4, 2, 9)]
    built = index(kinds, deletes, 1_700)
    for sequence in (1, 2, 4, 9):
        assert built.hidden(table(kinds, rows, 40_000), sequence).tolist() == twin(deletes, rows, sequence)
    assert built.keys.num_rows == len({key for keys, _ in deletes for key in keys})


def test_a_row_of_the_same_sequence_number_stays() -> None:
    built = index([pa.int64()], [([(1,)], 5)])
    assert [built.hidden(table([pa.int64()], [(1,)]), at).tolist() for at in (4, 5, 6)] == [[0], [], []]


def test_null_is_neither_zero_nor_nothing() -> None:
    rows = table([pa.int64(), pa.string()], [(0, ""), (None, ""), (0, None), (None, None)])
    for row in range(4):
        assert EqualityIndex.of([(rows.slice(row, 1), 2)]).hidden(rows, 1).tolist() == [row]


def test_keys_by_a_dictionary_are_their_values() -> None:
    rows = pa.table({"k": pa.array(["b", "a", None, "b"]).dictionary_encode()})
    views = pa.table({"k": pa.array(["b"], pa.string_view())})
    assert index([pa.string()], [([("b",), (None,)], 2)]).hidden(rows, 1).tolist() == [0, 2, 3]
    assert index([pa.large_string()], [([("b",)], 2)]).hidden(views, 1).tolist() == [0]


def test_the_index_grows_with_the_keys_only() -> None:
    built = index([pa.int64()], [([(n,) for n in range(1000)], at) for at in range(50)])
    held = (built.hashes, built.sequences, built.first, built.filled)
    assert built.keys.num_rows == 1000
    assert sum(each.nbytes for each in held) <= 50_000


KEYS = functools.partial(table, [pa.int64()])


@pytest.mark.parametrize(
    ("deleted", "rows", "message"),
    [
        (KEYS([(1,)]), table([pa.int32()], [(1,)]), "key column 'k0': type int32, expected int64"),
        (KEYS([(1,)]), table([pa.int64()] * 2, [(1, 1)]), "keys of 2 columns, expected 1"),
        (table([pa.float64()], [(1.0,)]), KEYS([(1,)]), "key column 'k0': type int64, expected uint64"),
        (KEYS([(1,)]), table([pa.list_(pa.int64())], [([1],)]), "key column 'k0': type list"),
    ],
)
def test_what_cannot_be_compared_is_named(deleted: pa.Table, rows: pa.Table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EqualityIndex.of([(deleted, 1)]).hidden(rows, 0)


def test_delete_files_must_agree_on_types() -> None:
    with pytest.raises(ValueError, match="key column 'k0': type string, expected int64"):
        EqualityIndex.of([(KEYS([(1,)]), 1), (table([pa.string()], [("1",)]), 2)])
