"""Bitmaps against sets of integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from nightkeep.kernels.bitmap import Width, from_positions, mask, positions

KINDS = {Width.BITS_32: BitMap, Width.BITS_64: BitMap64}
EDGES = st.sampled_from([0, 1, 65_535, 65_536, 65_537, 2**31 - 1])
POSITIONS = st.lists(st.one_of(st.integers(0, 300), EDGES, st.integers(0, 2**31 - 1)))


@given(POSITIONS, st.sampled_from(Width))
def test_positions_come_back_sorted_and_once(values: list[int], width: Width) -> None:
    bitmap = from_positions(np.array(values, np.int64), width)
    assert type(bitmap) is KINDS[width]
    assert positions(bitmap).dtype == np.int64
    assert positions(bitmap).tolist() == sorted(set(values))
    assert bitmap == KINDS[width](values)


def test_64_bits_hold_any_position() -> None:
    values = [0, 2**32, 2**63 - 1]
    assert positions(from_positions(np.array(values), Width.BITS_64)).tolist() == values


@given(POSITIONS, st.sampled_from(Width), st.integers(0, 400), st.one_of(st.integers(0, 70_000), EDGES))
def test_a_mask_is_membership_in_its_window(values: list[int], width: Width, rows: int, offset: int) -> None:
    held = set(values)
    flags = mask(from_positions(np.array(values, np.int64), width), rows, offset)
    assert flags.dtype == np.bool_
    assert flags.tolist() == [row in held for row in range(offset, offset + rows)]


def test_a_mask_leaves_its_bitmap_alone() -> None:
    bitmap = BitMap([1, 5, 900])
    assert mask(bitmap, 3).tolist() == [False, True, False]
    assert bitmap == BitMap([1, 5, 900])


@pytest.mark.parametrize(
    ("value", "width", "message"),
    [
        (-1, Width.BITS_32, "bitmap position -1, expected 0 or more"),
        (-1, Width.BITS_64, "bitmap position -1, expected 0 or more"),
        (2**31, Width.BITS_32, "bitmap position 2147483648, expected at most 2147483647"),
    ],
)
def test_a_position_without_room_is_refused(value: int, width: Width, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_positions(np.array([3, value]), width)
