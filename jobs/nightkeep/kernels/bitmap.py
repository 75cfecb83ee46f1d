"""Roaring bitmap <-> row positions. A position is a 0-based physical row ordinal of one data file."""

from array import array
from enum import Enum

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

Bitmap = BitMap | BitMap64


class Width(Enum):
    """The number of bits of a stored position."""

    BITS_32 = 32
    BITS_64 = 64


# Readers of the 32-bit form read positions as signed (Paimon RoaringBitmap32.MAX_VALUE).
_LARGEST_POSITION = {Width.BITS_32: 2**31 - 1, Width.BITS_64: 2**63 - 1}


def positions(bitmap: Bitmap) -> npt.NDArray[np.int64]:
    """The positions in ascending order."""
    return np.array(bitmap.to_array(), np.int64)


def from_positions(positions: npt.NDArray[np.int64], width: Width) -> Bitmap:
    """A bitmap of the positions, in any order and with repetitions.

    Raises ValueError for a negative position and for one that `width` has no room for.
    """
    if len(positions):
        _require_between(int(positions.min()), int(positions.max()), _LARGEST_POSITION[width])
    # pyroaring copies an array.array as one block and anything else number by number (25 against 165 ms for
    # four million positions).
    if width is Width.BITS_64:
        return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
    return BitMap(array("I", positions.astype(np.uint32).tobytes()))


def mask(bitmap: Bitmap, rows: int, offset: int = 0) -> npt.NDArray[np.bool_]:
    """One flag for each of `rows` rows from row `offset` on: True where the bitmap holds its position.

    Cost: the window, however many positions lie outside of it.
    """
    flags = np.zeros(rows, np.bool_)
    window = range(offset, offset + rows)
    held = bitmap & BitMap64(window) if isinstance(bitmap, BitMap64) else bitmap & BitMap(window)
    flags[positions(held) - offset] = True
    return flags


def _require_between(lowest: int, highest: int, largest: int) -> None:
    if lowest < 0:
        raise ValueError(f"bitmap position {lowest}, expected 0 or more")
    if highest > largest:
        raise ValueError(f"bitmap position {highest}, expected at most {largest}")
