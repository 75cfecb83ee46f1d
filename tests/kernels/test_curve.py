"""Curves against loops over bits, a textbook's Hilbert curve, and what defines one; the order against sorted()."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.kernels.curve import curve_keys, order_of
from nightkeep.model import Curve

each_curve = pytest.mark.parametrize("curve", Curve)


@st.composite
def ids(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Rows of one id per column, and their bits."""
    columns, bits = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 3, 10, 11, 12, 16, 17, 32]))
    number = st.one_of(st.integers(0, 2**bits - 1), st.sampled_from([0, 2**bits - 1]))
    return draw(st.lists(st.lists(number, min_size=columns, max_size=columns), min_size=1, max_size=20)), bits


def keys_of(rows: list[list[int]], bits: int, curve: Curve) -> np.ndarray:
    columns = [np.array(column, np.uint32) for column in zip(*rows, strict=True)]
    keys = curve_keys(columns, bits, curve)
    assert keys.dtype == np.uint64
    return keys


def interleaved(row: list[int], bits: int) -> int:
    used = min(bits, 64 // len(row))
    key = 0
    for bit in range(bits - 1, bits - 1 - used, -1):
        for number in row:
            key = key << 1 | (number >> bit & 1)
    return key


@given(ids())
def test_z_interleaves_bits(case: tuple[list[list[int]], int]) -> None:
    rows, bits = case
    expected = [row[0] if len(row) == 1 else interleaved(row, bits) for row in rows]
    assert keys_of(rows, bits, Curve.Z).tolist() == expected


@given(ids(), st.sampled_from(Curve))
def test_a_key_depends_on_its_row_only(case: tuple[list[list[int]], int], curve: Curve) -> None:
    rows, bits = case
    assert [int(keys_of([row], bits, curve)[0]) for row in rows] == keys_of(rows, bits, curve).tolist()


def skilling(row: list[int], bits: int) -> int:
    """AxestoTranspose, as printed, of one point; its bits interleaved."""
    x, top = list(row), 1 << (bits - 1)
    q = top
    while q > 1:
        for i in range(len(x)):
            if x[i] & q:
                x[0] ^= q - 1
            else:
                t = (x[0] ^ x[i]) & (q - 1)
                x[0] ^= t
                x[i] ^= t
        q >>= 1
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    t, q = 0, top
    while q > 1:
        if x[-1] & q:
            t ^= q - 1
        q >>= 1
    return interleaved([number ^ t for number in x], bits)


@given(ids())
def test_hilbert_is_skillings(case: tuple[list[list[int]], int]) -> None:
    rows, bits = case
    used = min(bits, 64 // len(rows[0]))
    cut = [[number >> (bits - used) for number in row] for row in rows]
    expected = [row[0] if len(row) == 1 else skilling(short, used) for row, short in zip(rows, cut, strict=True)]
    assert keys_of(rows, bits, Curve.HILBERT).tolist() == expected


def quadrants(bits: int) -> list[tuple[int, int]]:
    """The Hilbert curve of a square of 2 ** bits as Hilbert drew it: four smaller ones, the outer two turned over."""
    if bits == 0:
        return [(0, 0)]
    inner, half = quadrants(bits - 1), 1 << (bits - 1)
    first = [(y, x) for x, y in inner]
    last = [(2 * half - 1 - y, half - 1 - x) for x, y in inner]
    return [*first, *((x, y + half) for x, y in inner), *((x + half, y + half) for x, y in inner), *last]


@pytest.mark.parametrize("bits", range(1, 7))
def test_hilbert_in_a_square_is_the_textbooks(bits: int) -> None:
    path = quadrants(bits)
    forward = keys_of([list(point) for point in path], bits, Curve.HILBERT).tolist()
    mirrored = keys_of([[y, x] for x, y in path], bits, Curve.HILBERT).tolist()
    assert list(range(4**bits)) in (forward, mirrored)


@pytest.mark.parametrize("columns, bits", [(2, 1), (2, 5), (3, 1), (3, 3), (4, 2), (5, 2), (6, 1)])
def test_hilbert_visits_every_point_and_only_neighbours(columns: int, bits: int) -> None:
    grid = np.array(list(itertools.product(range(2**bits), repeat=columns)))
    keys = keys_of(grid.tolist(), bits, Curve.HILBERT)
    assert sorted(keys.tolist()) == list(range(len(grid)))
    steps = np.abs(np.diff(grid[np.argsort(keys)], axis=0))
    assert (steps.sum(axis=1) == 1).all()


@each_curve
def test_many_rows_are_as_one_by_one(curve: Curve) -> None:
    rows = np.random.default_rng(0).integers(0, 1024, (40_000, 3))
    keys = keys_of(rows.tolist(), 10, curve)
    twin = interleaved if curve is Curve.Z else skilling
    assert keys[::97].tolist() == [twin(row, 10) for row in rows[::97].tolist()]


@each_curve
def test_what_does_not_fit_is_refused(curve: Curve) -> None:
    one = np.array([1], np.uint32)
    for columns, bits, message in [
        ([], 10, "0 columns, expected 1 to 64"),
        ([one] * 65, 10, "65 columns, expected 1 to 64"),
        ([one], 0, "ids of 0 bits, expected 1 to 32"),
        ([one], 33, "ids of 33 bits, expected 1 to 32"),
        ([one, one[:0]], 10, "column 1: 0 ids, expected 1"),
        ([one, one * 4], 2, "column 1: id 4, expected at most 2 bits"),
    ]:
        with pytest.raises(ValueError, match=message):
            curve_keys(columns, bits, curve)


@given(
    st.one_of(
        st.lists(st.integers(0, 2**64 - 1), max_size=50),
        st.lists(st.integers(0, 3), max_size=50),
        st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**64 - 2]), max_size=50),
    )
)
def test_the_order_is_that_of_sorted(keys: list[int]) -> None:
    order = order_of(np.array(keys, np.uint64))
    assert order.dtype == np.int64
    assert order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@pytest.mark.parametrize("bits", [1, 30, 47, 50, 64])
def test_the_order_of_many_keys_is_stable(bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, 2**bits - 1, 100_000, np.uint64, endpoint=True)
    keys[::2] = keys[0]
    np.testing.assert_array_equal(order_of(keys), np.argsort(keys, kind="stable"))


def test_the_order_leaves_the_keys_alone() -> None:
    keys = np.array([3, 1, 2], np.uint64)
    order_of(keys)
    assert keys.tolist() == [3, 1, 2]
