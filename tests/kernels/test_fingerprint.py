"""Fingerprints are equal exactly when the multisets of rows are; the twin counts rows in a Counter.

Speed: tests/kernels/bench_kernels.py.
"""

import collections
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.paimon_values import KEY_TYPES
from tests.support.examples import examples

from nightkeep.kernels.fingerprint import NOTHING, Fingerprint, fingerprint, row_hashes

NANS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0x7FF8 << 48 | 1)]
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
NESTED_TYPES: dict[pa.DataType, st.SearchStrategy] = {
    pa.list_(pa.int64()): st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=3),
    pa.large_list(pa.string()): st.lists(st.sampled_from(["", "a", "aa"]), max_size=3),
    pa.list_(pa.list_(pa.bool_())): st.lists(st.lists(st.booleans(), max_size=2), max_size=2),
    pa.list_(pa.int8(), 2): st.lists(st.integers(0, 1), min_size=2, max_size=2),
    POINT: st.fixed_dictionaries(
        {"x": st.one_of(st.none(), st.integers(0, 2)), "y": st.one_of(st.none(), st.sampled_from(["", "b"]))}
    ),
    pa.list_(POINT): st.lists(st.one_of(st.none(), st.just({"x": 1, "y": None})), max_size=2),
    pa.map_(pa.string(), pa.int32()): st.dictionaries(
        st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 1))
    ).map(lambda entries: list(entries.items())),
}
TYPES = KEY_TYPES | NESTED_TYPES | {pa.float64(): st.sampled_from([0.0, -0.0, 1.5, *NANS]), pa.null(): st.none()}


def identity(value: object) -> object:
    """A value of which equal means the same bits."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return frozenset((name, identity(item)) for name, item in value.items())
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return frozenset((key, identity(item)) for key, item in value)  # a map
    if isinstance(value, list):
        return tuple(identity(item) for item in value)
    return tuple(map(identity, value)) if isinstance(value, tuple) else value


def twin(rows: list[tuple]) -> collections.Counter:
    return collections.Counter(tuple(identity(value) for value in row) for row in rows)


def batch(kinds: list[pa.DataType], rows: list[tuple]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(kinds))])


@st.composite
def rows_of(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple], list[tuple]]:
    """Two row lists over few values, so that being the same multiset and being nearly so are both likely."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    pools = [draw(st.lists(st.one_of(st.none(), TYPES[kind]), min_size=1, max_size=3)) for kind in kinds]
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    ours = draw(st.lists(row, max_size=8))
    theirs = draw(st.one_of(st.permutations(ours), st.lists(row, min_size=len(ours), max_size=len(ours))))
    return kinds, ours, theirs


@settings(max_examples=examples(600))
@given(rows_of())
def test_equal_exactly_when_the_multisets_are(case: tuple) -> None:
    kinds, ours, theirs = case
    same = fingerprint(batch(kinds, ours)) == fingerprint(batch(kinds, theirs))
    assert same == (twin(ours) == twin(theirs))


@settings(max_examples=examples(200))
@given(rows_of(), st.integers(0, 8), st.sampled_from([1, 2, 3]))
def test_batches_and_slices_do_not_show(case: tuple, cut: int, size: int) -> None:
    kinds, rows, _ = case
    whole = batch(kinds, rows)
    table = pa.Table.from_batches([whole])
    pieces = [whole.slice(at, size) for at in range(0, len(rows), size)]
    assert fingerprint(pa.Table.from_batches(pieces, whole.schema)) == fingerprint(whole) == fingerprint(table)
    assert fingerprint(whole.slice(cut)) == fingerprint(batch(kinds, rows[cut:]))
    assert fingerprint(whole.slice(0, cut)) + fingerprint(whole.slice(cut)) == fingerprint(whole)
    assert fingerprint(whole) - fingerprint(whole.slice(cut)) == fingerprint(whole.slice(0, cut))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_distinguishes_its_values_and_null(kind: pa.DataType) -> None:
    @settings(max_examples=examples(30))
    @given(st.lists(st.one_of(st.none(), TYPES[kind]), min_size=2, max_size=8))
    def check(values: list) -> None:
        a, b = row_hashes(batch([kind], [(value,) for value in values]))
        # 64 bits cannot hold all their values and a null: in one lane a null has a double, never in both.
        assert len(set(zip(a, b, strict=True))) == len(set(map(identity, values)))
        assert not set(a.tolist()) & set(b.tolist())

    check()


@pytest.mark.parametrize("rows", [1, 1_000, 100_000])
def test_large_tables_in_any_order_and_cut(rows: int) -> None:
    pick = np.random.default_rng(rows)
    table = pa.table(
        {
            "id": np.arange(rows),
            "note": [None if i % 7 == 0 else "n" * (i % 40) for i in range(rows)],
            "tags": [[i % 3] * (i % 4) for i in range(rows)],
        }
    )
    expected = fingerprint(table)
    shuffled = table.take(pa.array(pick.permutation(rows)))
    assert fingerprint(shuffled) == expected
    assert fingerprint(pa.concat_tables([table.slice(rows // 3), table.slice(0, rows // 3)])) == expected
    assert fingerprint(table.slice(1)) != expected


VALUES = ["a", None, "", "a longer string than one word", "\U0001f600", "a"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_encodings_of_one_string_agree(kind: pa.DataType) -> None:
    plain = pa.array(VALUES, pa.string())
    other = plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain.cast(kind)
    assert fingerprint(pa.table({"s": other})) == fingerprint(pa.table({"s": plain}))
    assert fingerprint(pa.table({"s": other.slice(2, 3)})) == fingerprint(pa.table({"s": plain.slice(2, 3)}))


def test_what_lies_under_a_null_does_not_show() -> None:
    valid = pa.py_buffer(b"\x05")
    numbers = [pa.py_buffer(np.array(values, np.int32)) for values in ([1, 2, 3], [1, 99, 3])]
    fixed = [pa.Array.from_buffers(pa.int32(), 3, [valid, values]) for values in numbers]
    assert fingerprint(pa.table({"v": fixed[0]})) == fingerprint(pa.table({"v": fixed[1]}))
    offsets = pa.py_buffer(np.array([0, 1, 12, 13], np.int32))
    texts = [pa.py_buffer(b"a" + hidden * 11 + b"b") for hidden in (b"x", b"y")]
    strings = [pa.Array.from_buffers(pa.string(), 3, [valid, offsets, text]) for text in texts]
    assert fingerprint(pa.table({"v": strings[0]})) == fingerprint(pa.table({"v": pa.array(["a", None, "b"])}))
    assert fingerprint(pa.table({"v": strings[0]})) == fingerprint(pa.table({"v": strings[1]}))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array([7, 8, 9]), mask=pa.array([False, True, False]))
    assert fingerprint(pa.table({"v": lists})) == fingerprint(pa.table({"v": pa.array([[7], None, [9]])}))


def test_values_cannot_change_places() -> None:
    ours = pa.table({"a": [1, 2], "b": [3, 4]})
    between_columns = pa.table({"a": [3, 2], "b": [1, 4]})
    between_rows = pa.table({"a": [2, 1], "b": [3, 4]})
    assert len({fingerprint(table) for table in (ours, between_columns, between_rows)}) == 3
    strings = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"), (None, "abc"), ("abc", None)]
    assert len({fingerprint(pa.table({"a": [a], "b": [b]})) for a, b in strings}) == len(strings)


def test_each_flipped_bit_changes_both_sums() -> None:
    base = fingerprint(pa.table({"a": np.zeros(3, np.int64)}))
    flipped = [fingerprint(pa.table({"a": np.array([0, 1 << bit, 0])})) for bit in range(63)]
    assert len({one.sum_a for one in (base, *flipped)}) == len({one.sum_b for one in (base, *flipped)}) == 64


def test_rows_without_columns_are_counted() -> None:
    table = pa.table({"a": [1, 2, 3]}).select([])
    assert fingerprint(table).rows == 3
    assert fingerprint(table) != fingerprint(pa.table({"a": [1, 2]}).select([]))
    assert fingerprint(pa.table({})) == fingerprint(pa.table({"a": pa.array([], pa.int64())})) == NOTHING


def test_text_form() -> None:
    value = Fingerprint(12, 0xAB, 2**64 - 1)
    assert str(value) == "12:00000000000000ab:ffffffffffffffff"
    assert Fingerprint.parse(str(value)) == value
    with pytest.raises(ValueError, match="fingerprint '12:ab:cd', expected ROWS:HEX:HEX"):
        Fingerprint.parse("12:ab:cd")


def test_a_type_without_a_rule_is_named() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(ValueError, match="column type sparse_union"):
        fingerprint(pa.table({"u": union}))


PROGRAM = """
import pyarrow as pa
from nightkeep.kernels.fingerprint import fingerprint
print(fingerprint(pa.table({"s": ["a", None, "bcd" * 9], "f": [0.5, -0.0, None], "l": [[1], [], None]})))
"""


@pytest.mark.slow
def test_every_process_agrees() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    here = pa.table({"s": ["a", None, "bcd" * 9], "f": [0.5, -0.0, None], "l": [[1], [], None]})
    assert printed == [str(fingerprint(here))] * 2
