"""64-bit Roaring bitmaps <-> the portable bytes that deletion vectors of every format hold after their magic.

Little-endian (RoaringFormatSpec, "Extension for 64-bit implementations"): the number of 32-bit bitmaps, then the upper
half of the positions and the bitmap of the lower halves, for each.
"""

from __future__ import annotations

import struct
from typing import Final

from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, reason_of

MAX_POSITION: Final = (2**31 - 2) << 32 | 1 << 31
"""The largest that Java's readers hold: of Delta's RoaringBitmapArray (MAX_REPRESENTABLE_VALUE), Paimon's
OptimizedRoaringBitmap64 (MAX_VALUE) and Iceberg's RoaringPositionBitmap (MAX_POSITION)."""
MALFORMED: Final = (ValueError, IndexError, struct.error)
"""What reading bytes that are no bitmap raises."""


def encode(bitmap: BitMap64) -> bytes:
    """Equal sets give equal bytes. Raises ValueError for a position that Java cannot hold."""
    if bitmap and bitmap.max() > MAX_POSITION:
        raise ValueError(f"deletion vector: expected positions up to {MAX_POSITION}, found {bitmap.max()}")
    # As a new bitmap: run_optimize leaves a run as it finds it where a run and an array are of equal size.
    # (to_array gives an array.array, which pyroaring copies as one block.)
    plain = BitMap64(bitmap.to_array())
    plain.run_optimize()
    serialized: bytes = plain.serialize()
    return serialized


def decode(content: bytes, *, subject: str) -> BitMap64:
    """The positions. Raises CorruptMetadata naming `subject` unless the bytes are one whole, well-formed bitmap."""
    try:
        bitmap, size = parse(content)
    except MALFORMED as error:
        raise CorruptMetadata(subject, "a 64-bit Roaring bitmap", reason_of(error)) from error
    if size != len(content):
        raise CorruptMetadata(subject, "a 64-bit Roaring bitmap", f"a bitmap of {size} bytes in {len(content)}")
    if bitmap and bitmap.max() > MAX_POSITION:
        raise CorruptMetadata(subject, f"positions up to {MAX_POSITION}", str(bitmap.max()))
    return bitmap


def parse(content: bytes) -> tuple[BitMap64, int]:
    """The bitmap that `content` begins with, and its size in bytes. Raises what MALFORMED lists.

    pyroaring checks what is in a bitmap, and lets more bytes follow.
    """
    bitmap = BitMap64.deserialize(content)
    again = bitmap.serialize()
    # Java lists empty bitmaps for the keys it skips; they are gone from `again`.
    empty = _COUNT.unpack_from(content)[0] - _COUNT.unpack_from(again)[0]
    return bitmap, len(again) + empty * _EMPTY_BYTES


_COUNT: Final = struct.Struct("<q")
# A key, and a 32-bit bitmap without containers: cookie 12346 and their count.
_EMPTY_BYTES: Final = 4 + 8
