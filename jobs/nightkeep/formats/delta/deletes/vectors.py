"""Deletion vectors <-> bytes. A vector is returned only if its size, checksum and cardinality are right.

PROTOCOL.md, "Deletion Vector Format": a .bin file is the version byte 1, then for each vector its size, its payload and
its CRC-32. Size and CRC are big-endian. The payload, also of an inline Z85 vector, is a little-endian magic number and
a 64-bit bitmap.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import Final

from pyroaring import BitMap, BitMap64

from nightkeep.encodings import roaring
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.delta.deletes import z85
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, Vector, VectorStorage
from nightkeep.formats.delta.metadata.locations import is_absolute, located
from nightkeep.formats.delta.metadata.naming import vector_name
from nightkeep.storage import Storage

PACKED_BYTES: Final = 2 << 20
"""A file of vectors gets no more vectors from this size on (delta-spark's deletionVectors.packing.targetSize)."""


def read_vector(storage: Storage, file: DeltaDataFile) -> BitMap64:
    """The deleted positions of a data file; empty if it has no vector.

    Raises CorruptMetadata, naming the vector's file and offset, for bytes that contradict the descriptor, themselves or
    the data file's row count; MissingFile; RefusedTable for an absolute path in another kind of store.
    """
    vector = file.vector
    if vector is None:
        return BitMap64()
    subject = f"{file.path}: inline vector"
    if vector.kind is VectorStorage.INLINE:
        payload = _inline(vector, subject)
    else:
        place, name = _place(storage, vector, file)
        subject = f"{place.root}/{name}: vector at {vector.offset}"
        payload = _stored(place, name, vector, subject=subject)
    bitmap = decode(payload, subject=subject)
    if len(bitmap) != vector.rows:
        raise CorruptMetadata(subject, f"{vector.rows} deleted rows", str(len(bitmap)))
    if file.rows is not None and bitmap and bitmap.max() >= file.rows:
        raise CorruptMetadata(subject, f"positions below the {file.rows} rows of {file.path}", str(bitmap.max()))
    return bitmap


def encode(bitmap: BitMap64) -> bytes:
    """The payload: magic number and bitmap. Equal sets give equal bytes. Raises ValueError beyond Java's positions."""
    return _PORTABLE + roaring.encode(bitmap)


def decode(payload: bytes, *, subject: str) -> BitMap64:
    """The positions of a payload. Raises CorruptMetadata naming `subject` unless it is one complete, valid bitmap."""
    magic, content = payload[: len(_PORTABLE)], payload[len(_PORTABLE) :]
    if magic not in (_PORTABLE, _NATIVE):
        raise CorruptMetadata(
            subject, f"magic {_PORTABLE.hex()} or {_NATIVE.hex()}", "other bytes" if magic else "no bytes"
        )
    try:
        portable = content if magic == _PORTABLE else _portable(content)
    except roaring.MALFORMED as error:
        raise CorruptMetadata(subject, "a 64-bit Roaring bitmap", reason_of(error)) from error
    return roaring.decode(portable, subject=subject)


class DeltaVectorWriter:
    """Packs vectors into files below `prefix`, about PACKED_BYTES each. No file is durable before `close`."""

    def __init__(self, storage: Storage, prefix: str) -> None:
        self._storage, self._prefix = storage, prefix
        self._written: list[str] = []
        self._start()

    def add(self, bitmap: BitMap64) -> Vector:
        """Add a vector and return its descriptor. The vector is readable once the writer is closed."""
        payload = encode(bitmap)
        if len(self._content) > 1 and len(self._content) + len(payload) > PACKED_BYTES:
            self._finish()
        place, offset = self._prefix + z85.encode(self._unique.bytes), len(self._content)
        self._content += _INT.pack(len(payload)) + payload + _CRC.pack(zlib.crc32(payload))
        return Vector(VectorStorage.RELATIVE, place, offset, len(payload), len(bitmap))

    def close(self) -> tuple[str, ...]:
        """Write the last file. Returns the names of all files written."""
        self._finish()
        return tuple(self._written)

    def _start(self) -> None:
        self._unique, self._content = uuid.uuid4(), bytearray([_VERSION])

    def _finish(self) -> None:
        if len(self._content) > 1:
            name = _name(self._prefix, self._unique)
            self._storage.put(name, bytes(self._content))
            self._written.append(name)
        self._start()


def vector_file(vector: Vector) -> str | None:
    """The name, below the table's root, of the file that holds the vector; None unless its path is relative.

    Raises CorruptMetadata for a place that does not end in a UUID.
    """
    if vector.kind is not VectorStorage.RELATIVE:
        return None
    prefix, text = vector.place[:-_UUID_CHARACTERS], vector.place[-_UUID_CHARACTERS:]
    try:
        return _name(prefix, uuid.UUID(bytes=z85.decode(text)))
    except ValueError as error:
        raise CorruptMetadata(
            f"deletion vector {vector.place}", "a UUID in Z85 at its end", reason_of(error)
        ) from error


_VERSION: Final = 1
_PORTABLE: Final = struct.pack("<i", 1681511377)
_NATIVE: Final = struct.pack("<i", 1681511376)
_INT: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_COUNT: Final = struct.Struct("<q")
_KEY: Final = struct.Struct("<i")
_UUID_CHARACTERS: Final = 20


def _name(prefix: str, unique: uuid.UUID) -> str:
    return vector_name(prefix, unique) if prefix else vector_name("", unique).lstrip("/")


def _place(storage: Storage, vector: Vector, file: DeltaDataFile) -> tuple[Storage, str]:
    """The store and the name of a vector's file. An absolute place is a URI, encoded like the path of an add."""
    name = vector_file(vector)
    if name is not None:
        return storage, name
    if not is_absolute(vector.place):
        feature = f"its deletion vector is at {vector.place}, which is no absolute path"
        raise RefusedTable(file.path, feature, "rewrite the table with REORG TABLE ... APPLY (PURGE)")
    return located(storage, vector.place)


def _inline(vector: Vector, subject: str) -> bytes:
    try:
        data = z85.decode(vector.place)
    except ValueError as error:
        raise CorruptMetadata(subject, "Z85 text", reason_of(error)) from error
    if not 0 <= len(data) - vector.bytes < 4:
        raise CorruptMetadata(subject, f"{vector.bytes} bytes and at most 3 of padding", f"{len(data)} bytes")
    return data[: vector.bytes]


def _stored(storage: Storage, name: str, vector: Vector, *, subject: str) -> bytes:
    """The payload of one vector, once its version, size and checksum hold. Reads no other vector of the file."""
    offset = vector.offset or 0
    with storage.open(name) as stored:
        version = stored.read(1)
        # Some stores refuse to seek beyond the end.
        stored.seek(min(offset, stored.size()))
        record = stored.read(_INT.size + vector.bytes + _CRC.size)
    if version != bytes([_VERSION]) or offset < 1:
        raise CorruptMetadata(
            subject, f"version byte {_VERSION} and a later offset", "another" if version else "an empty file"
        )
    if len(record) != _INT.size + vector.bytes + _CRC.size:
        raise CorruptMetadata(subject, f"{vector.bytes} bytes with size and checksum", f"{len(record)} bytes in all")
    (size,) = _INT.unpack_from(record)
    if size != vector.bytes:
        raise CorruptMetadata(subject, f"size {vector.bytes} as its descriptor states", "another one")
    payload = record[_INT.size : -_CRC.size]
    (crc,) = _CRC.unpack(record[-_CRC.size :])
    if zlib.crc32(payload) != crc:
        raise CorruptMetadata(subject, "bytes of the crc that is stored with them", "others")
    return payload


def _portable(content: bytes) -> bytes:
    """The native form (RoaringBitmapArray.scala: a count, then length and bitmap of every key) -> the portable form."""
    (count,) = _KEY.unpack_from(content)
    parts, at = [_COUNT.pack(count)], _KEY.size
    for key in range(count):
        (length,) = _KEY.unpack_from(content, at)
        part = content[at + _KEY.size : at + _KEY.size + length]
        if length < 0 or len(BitMap.deserialize(part).serialize()) != length:
            raise ValueError(f"a bitmap of {length} bytes at {at}")
        parts += [_KEY.pack(key), part]
        at += _KEY.size + length
    if count < 0 or at != len(content):
        raise ValueError(f"{count} bitmaps in {at} of {len(content)} bytes")
    return b"".join(parts)
