"""64-bit Roaring bitmaps <-> the portable bytes that follow the magic in deletion vectors of every format.

Little-endian (RoaringFormatSpec, "Extension for 64-bit implementations"): the number of 32-bit bitmaps, then for each
the upper 32 bits of its positions and the bitmap of the lower 32 bits.
"""

from __future__ import annotations

import struct
from typing import Final

from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, reason_of

MAX_POSITION: Final = (2**31 - 2) << 32 | 1 << 31
"""The largest position that Java's readers support: Delta's RoaringBitmapArray (MAX_REPRESENTABLE_VALUE), Paimon's
OptimizedRoaringBitmap64 (MAX_VALUE) and Iceberg's RoaringPositionBitmap (MAX_POSITION)."""
MALFORMED: Final = (ValueError, IndexError, struct.error)
"""What reading bytes that are no valid bitmap raises."""


def encode(bitmap: BitMap64) -> bytes:
    """The bytes of a bitmap. Equal sets give equal bytes. Raises ValueError for a position that Java cannot hold."""
    if bitmap and bitmap.max() > MAX_POSITION:
        raise ValueError(f"deletion vector: expected positions up to {MAX_POSITION}, found {bitmap.max()}")
    # Build a new bitmap: where run and array have equal size, run_optimize keeps what it finds.
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
    """The bitmap at the start of `content`, and its size in bytes. Raises what MALFORMED lists.

    pyroaring validates a bitmap, and accepts further bytes after it.
    """
    bitmap = BitMap64.deserialize(content)
    again = bitmap.serialize()
    # Java writes empty bitmaps for unused keys. They are missing in `again`.
    empty = _COUNT.unpack_from(content)[0] - _COUNT.unpack_from(again)[0]
    return bitmap, len(again) + empty * _EMPTY_BYTES


_COUNT: Final = struct.Struct("<q")
# An empty bitmap: its key, cookie 12346, and the container count 0.
_EMPTY_BYTES: Final = 4 + 8
