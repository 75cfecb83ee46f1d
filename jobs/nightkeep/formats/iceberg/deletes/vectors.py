"""Deletion vectors <-> blobs of Puffin files. Size, checksum and cardinality of every vector are verified on reading.

Puffin spec, "deletion-vector-v1"; BitmapPositionDeleteIndex.java, BaseDVFileWriter.java. A blob is: size of magic and
bitmap, magic, bitmap, CRC-32 of magic and bitmap. Size and checksum are big-endian, magic and bitmap little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from pyroaring import BitMap64

from nightkeep.encodings import roaring
from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.iceberg.deletes.puffin import Blob, NewBlob, open_puffin, write_puffin
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.model.version import __version__
from nightkeep.storage import Storage

BLOB_TYPE: Final = "deletion-vector-v1"


def read_vectors(
    storage: Storage, wanted: Iterable[tuple[ContentFile, int | None]]
) -> Iterator[tuple[ContentFile, BitMap64]]:
    """Yield each vector's entry with its deleted positions, ordered by Puffin file and offset.

    `wanted` pairs a vector's entry with the row count of its data file, or None. Each Puffin file is opened once, and
    one vector is in memory at a time. A file without a Puffin footer is checked by the manifest's entry and by the
    vector's own size, magic and checksum. Raises MissingFile, and CorruptMetadata naming the Puffin file and offset
    for bytes that contradict the entry, the footer, their own checksum or the row count.
    """
    by_file: dict[tuple[str, int], list[tuple[int, ContentFile, int | None]]] = {}
    for file, rows in wanted:
        by_file.setdefault((file.name, file.bytes), []).append((_offset(file), file, rows))
    for (name, file_bytes), entries in sorted(by_file.items()):
        with open_puffin(storage, name, file_bytes=file_bytes) as puffin:
            for offset, file, rows in sorted(entries, key=lambda entry: entry[0]):
                if puffin.is_bare:
                    yield file, _decoded(file, puffin.bare(offset, file.content_bytes or 0), rows=rows)
                else:
                    yield file, _positions(file, *puffin.blob(offset), rows=rows)


def encode(bitmap: BitMap64) -> bytes:
    """The blob of a bitmap. Equal sets give equal bytes. Raises ValueError for a position that Java cannot hold."""
    payload = _MAGIC + roaring.encode(bitmap)
    return _SIZE.pack(len(payload)) + payload + _SIZE.pack(zlib.crc32(payload))


def decode(content: bytes, *, subject: str) -> BitMap64:
    """The positions. Raises CorruptMetadata naming `subject` unless the bytes are one whole, well-formed blob."""
    payload = content[_SIZE.size : -_SIZE.size]
    if len(content) < 2 * _SIZE.size + len(_MAGIC) or _SIZE.unpack_from(content)[0] != len(payload):
        raise CorruptMetadata(subject, f"its size {len(payload)} first", f"another in {kind_of(content)}")
    if not payload.startswith(_MAGIC):
        raise CorruptMetadata(subject, f"magic {_MAGIC.hex()}", f"other bytes, {len(payload)} in all")
    (crc,) = _SIZE.unpack(content[-_SIZE.size :])
    if zlib.crc32(payload) != crc:
        raise CorruptMetadata(subject, f"crc {crc:#010x}", f"{zlib.crc32(payload):#010x}")
    return roaring.decode(payload[len(_MAGIC) :], subject=subject)


class PuffinVectorWriter:
    """Collects vectors for one Puffin file at `location`. `close` writes the file, unless there are no vectors."""

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage, self._location = storage, location
        self._files: dict[str, tuple[ContentFile, int]] = {}
        self._blobs: list[NewBlob] = []

    def add(self, data_file: ContentFile, bitmap: BitMap64) -> None:
        """Add the complete vector of a data file: it includes the positions that were deleted before.

        Raises ValueError for an empty vector, a second vector of the same file, and positions that the file does not
        have.
        """
        if not bitmap or bitmap.max() >= data_file.rows:
            found = f"up to {bitmap.max()}" if bitmap else "none"
            raise ValueError(f"{data_file.path}: expected positions below its {data_file.rows} rows, found {found}")
        if data_file.path in self._files:
            raise ValueError(f"{data_file.path}: expected one vector, found a second")
        properties = {_REFERENCED: data_file.path, _CARDINALITY: str(len(bitmap))}
        self._files[data_file.path] = (data_file, len(bitmap))
        self._blobs.append(NewBlob(BLOB_TYPE, (_POSITION_FIELD,), encode(bitmap), properties))

    def close(self) -> tuple[NewFile, ...]:
        """Write the file. Returns one entry per vector in the order of `add`: the same path, each its own offset."""
        if not self._blobs:
            return ()
        name, properties = name_in(self._storage, self._location), {"created-by": f"nightkeep {__version__}"}
        size, blobs = write_puffin(self._storage, name, self._blobs, properties)
        pairs = zip(self._files.values(), blobs, strict=True)
        return tuple(self._new_file(file, rows, blob, size) for (file, rows), blob in pairs)

    def _new_file(self, file: ContentFile, rows: int, blob: Blob, size: int) -> NewFile:
        raw = {
            "content": FileContent.POSITION_DELETES.value,
            "file_path": self._location,
            "file_format": "PUFFIN",
            "partition": file.partition,
            "record_count": rows,
            "file_size_in_bytes": size,
            "referenced_data_file": file.path,
            "content_offset": blob.offset,
            "content_size_in_bytes": blob.length,
        }
        return NewFile(FileContent.POSITION_DELETES, file.spec_id, raw)


_MAGIC: Final = bytes.fromhex("d1d33964")
_SIZE: Final = struct.Struct(">I")
_POSITION_FIELD: Final = 2147483645
"""The field id of `_pos` (spec, "Reserved Field IDs")."""
_REFERENCED: Final = "referenced-data-file"
_CARDINALITY: Final = "cardinality"


def _subject(file: ContentFile) -> str:
    return f"{file.path}: vector at {file.content_offset}"


def _offset(file: ContentFile) -> int:
    if file.content_offset is None or file.content_bytes is None or not file.is_vector:
        raise CorruptMetadata(_subject(file), "an entry with content_offset and content_size_in_bytes", "one without")
    return file.content_offset


def _positions(file: ContentFile, blob: Blob, content: bytes, *, rows: int | None) -> BitMap64:
    _require_agreement(file, blob, _subject(file))
    return _decoded(file, content, rows=rows)


def _decoded(file: ContentFile, content: bytes, *, rows: int | None) -> BitMap64:
    subject = _subject(file)
    bitmap = decode(content, subject=subject)
    if len(bitmap) != file.rows:
        raise CorruptMetadata(subject, f"{file.rows} deleted rows", str(len(bitmap)))
    if rows is not None and bitmap and bitmap.max() >= rows:
        raise CorruptMetadata(subject, f"positions below the {rows} rows of {file.referenced}", str(bitmap.max()))
    return bitmap


def _require_agreement(file: ContentFile, blob: Blob, subject: str) -> None:
    """The manifest's entry must match the footer exactly (spec, note 5 of data_file)."""
    expected = (BLOB_TYPE, file.content_bytes, None, file.referenced, str(file.rows))
    properties = blob.properties
    found = (blob.type, blob.length, blob.codec, properties.get(_REFERENCED), properties.get(_CARDINALITY))
    if found != expected:
        raise CorruptMetadata(subject, f"type, length, codec, data file and cardinality {expected}", str(found))
