"""Deletion vectors <-> bytes of a DV index file. A vector is returned only if its checksum and size are right.

A file (DeletionVectorsIndexFile) is the version byte 1, then one record per data file: size, magic, portable bitmap,
crc. Integers are big-endian, except the little-endian magic of BITMAP64. size covers magic and bitmap; crc is the CRC32
of both. Each record's magic gives its kind. A file of only the version byte, with no ranges, means that nothing is
deleted.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
from pyroaring import BitMap, BitMap64

from nightkeep.encodings import roaring
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange

Vector: TypeAlias = BitMap | BitMap64

# BitmapDeletionVector counts positions in a Java int.
MAX_POSITION_32: Final = 2**31 - 1
MAX_FILE_BYTES: Final = 2**31 - 1


class BitmapKind(Enum):
    """How a table's vectors are stored: option deletion-vectors.bitmap64."""

    BITMAP32 = "BITMAP32"
    BITMAP64 = "BITMAP64"


def encode_vectors(vectors: Sequence[tuple[str, Vector]], kind: BitmapKind) -> tuple[bytes, tuple[VectorRange, ...]]:
    """A whole index file of (data file name, deleted positions), and the ranges in the same order.

    Equal sets give equal bytes: those of a Java vector filled row by row, except that Java's BITMAP64 lists an empty
    bitmap for every high word it skips; the format allows both. The arguments are not changed. Raises ValueError naming
    the data file for a position that `kind` cannot hold, and for too large a file.
    """
    content = bytearray([_VERSION])
    ranges: list[VectorRange] = []
    for data_file, vector in vectors:
        body = _body(data_file, vector, kind)
        layout = _LAYOUTS[kind]
        ranges.append(VectorRange(data_file, len(content), len(body) + layout.extra_length, len(vector)))
        content += _INT.pack(len(body)) + body + _CRC.pack(zlib.crc32(body))
        # Index manifests hold offsets as Avro ints.
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"index file: expected up to {MAX_FILE_BYTES} bytes, found {len(content)}")
    return bytes(content), tuple(ranges)


def decode_vector(data: bytes, where: VectorRange, *, subject: str) -> Vector:
    """The positions deleted from `where.data_file`. `data` is the whole index file.

    Raises CorruptMetadata naming `subject` (the index file), the data file and the offset if version, size, checksum or
    cardinality (if recorded) are wrong.
    """
    subject = f"{subject}: vector of {where.data_file} at {where.offset}"
    if data[:1] != bytes([_VERSION]):
        raise CorruptMetadata(subject, f"version byte {_VERSION}", f"another, in {kind_of(data)}")
    body = _checked_body(data, where, subject=subject)
    kind = _kind(body, subject=subject)
    expected = where.length - _LAYOUTS[kind].extra_length
    if len(body) != expected:
        raise CorruptMetadata(subject, f"size {expected} for length {where.length}", str(len(body)))
    vector = _bitmap(body[_MAGIC_BYTES:], kind, subject=subject)
    if where.cardinality is not None and len(vector) != where.cardinality:
        raise CorruptMetadata(subject, f"{where.cardinality} deleted rows", str(len(vector)))
    return vector


_VERSION: Final = 1
_INT: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_MAGIC_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    """The magic number's bytes in the file, and what `length` counts beyond the size field."""

    magic: bytes
    extra_length: int
    max_position: int


_LAYOUTS: Final[Mapping[BitmapKind, _Layout]] = {
    BitmapKind.BITMAP32: _Layout(_INT.pack(1581511376), 0, MAX_POSITION_32),
    BitmapKind.BITMAP64: _Layout(struct.pack("<i", 1681511377), _INT.size + _CRC.size, roaring.MAX_POSITION),
}


def _body(data_file: str, vector: Vector, kind: BitmapKind) -> bytes:
    layout = _LAYOUTS[kind]
    if vector and vector.max() > layout.max_position:
        raise ValueError(f"vector of {data_file}: expected positions up to {layout.max_position}, found {vector.max()}")
    # Rebuilt from an array: run_optimize keeps an existing run if a run and an array have equal size.
    positions = np.asarray(vector.to_array())
    # array.array and not NumPy: pyroaring takes 1.4 M positions in 0.02 s, and 0.17 s as a NumPy array.
    stored: Vector = (
        BitMap(array("I", positions.astype(np.uint32).tobytes()))
        if kind is BitmapKind.BITMAP32
        else BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
    )
    stored.run_optimize()
    return layout.magic + stored.serialize()


def _checked_body(data: bytes, where: VectorRange, *, subject: str) -> bytes:
    """Magic and bitmap, after their size and checksum are checked."""
    end = where.offset + _INT.size
    if where.offset < 1 or end > len(data):
        raise CorruptMetadata(subject, f"an offset from 1 to {len(data) - _INT.size}", str(where.offset))
    (size,) = _INT.unpack_from(data, where.offset)
    if not _MAGIC_BYTES <= size <= len(data) - end - _CRC.size:
        raise CorruptMetadata(subject, f"a size inside the file of {len(data)} bytes", str(size))
    body = data[end : end + size]
    (stored,) = _CRC.unpack_from(data, end + size)
    if zlib.crc32(body) != stored:
        raise CorruptMetadata(subject, f"crc {stored:#010x}", f"{zlib.crc32(body):#010x}")
    return body


def _kind(body: bytes, *, subject: str) -> BitmapKind:
    for kind, layout in _LAYOUTS.items():
        if body.startswith(layout.magic):
            return kind
    magics = " or ".join(layout.magic.hex() for layout in _LAYOUTS.values())
    raise CorruptMetadata(subject, f"magic {magics}", f"other bytes, {len(body)} in all")


def _bitmap(content: bytes, kind: BitmapKind, *, subject: str) -> Vector:
    try:
        vector, size = _PARSE[kind](content)
    except roaring.MALFORMED as error:
        raise CorruptMetadata(subject, f"a portable {kind.value}", reason_of(error)) from error
    if size != len(content):
        raise CorruptMetadata(subject, f"{size} bytes of bitmap", str(len(content)))
    if vector and vector.max() > _LAYOUTS[kind].max_position:
        raise CorruptMetadata(subject, f"positions up to {_LAYOUTS[kind].max_position}", str(vector.max()))
    return vector


def _parse_32(content: bytes) -> tuple[Vector, int]:
    vector = BitMap.deserialize(content)
    return vector, len(vector.serialize())


_PARSE: Final[Mapping[BitmapKind, Callable[[bytes], tuple[Vector, int]]]] = {
    BitmapKind.BITMAP32: _parse_32,
    BitmapKind.BITMAP64: roaring.parse,
}
