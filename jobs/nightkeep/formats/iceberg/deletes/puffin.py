"""Puffin files: blobs between magic bytes, and a JSON footer that says where each is (Iceberg's Puffin spec).

PFA1 blob ... PFA1 payload payload-size(i32 LE) flags(4) PFA1
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.limits import DOCUMENT
from nightkeep.storage import Storage, spelled

MAGIC: Final = b"PFA1"


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob's line in the footer. `offset` is from the file's begin, `length` as stored."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Footer:
    """Blobs in the footer's order, properties of the file, and where the footer begins."""

    blobs: tuple[Blob, ...]
    properties: Mapping[str, str]
    start: int


@dataclass(frozen=True, slots=True)
class NewBlob:
    """A blob that is to be written as it is. Its snapshot and sequence number are those of the commit: -1."""

    type: str
    fields: tuple[int, ...]
    content: bytes
    properties: Mapping[str, str]


class PuffinFile:
    """An open Puffin file of `file_bytes`: its footer is read once, and of its blobs those that are asked for.

    `is_bare`: it has neither magic nor footer, as vectors of older DuckDB: only manifests say where its blobs are.
    Raises CorruptMetadata naming the file for another size and a footer that is none.
    """

    def __init__(self, name: str, source: pa.NativeFile, *, file_bytes: int) -> None:
        _require_size(name, source, file_bytes)
        self._name, self._source, self._bytes = name, source, file_bytes
        self._by_offset: dict[int, Blob] = {}
        tail = _tail(source, file_bytes)
        self.is_bare = _is_bare(source, tail)
        if self.is_bare:
            return
        footer = _footer(name, source, file_bytes, tail)
        # A blob without bytes begins where the next one does.
        for blob in sorted(footer.blobs, key=lambda each: each.length, reverse=True):
            self._by_offset.setdefault(blob.offset, blob)

    def blob(self, offset: int) -> tuple[Blob, bytes]:
        """The blob that begins there, as it is stored, and what the footer says. Raises CorruptMetadata: none does."""
        blob = self._by_offset.get(offset)
        if blob is None:
            raise CorruptMetadata(self._name, f"a blob at offset {offset}", "none in the footer")
        self._source.seek(offset)
        return blob, self._source.read(blob.length)

    def bare(self, offset: int, length: int) -> bytes:
        """Bytes of a file without a footer. Raises CorruptMetadata where it has not that many."""
        if min(offset, length) < 0 or offset + length > self._bytes:
            raise CorruptMetadata(self._name, f"{length} bytes at offset {offset}", f"{self._bytes} bytes in all")
        self._source.seek(offset)
        return self._source.read(length)


@contextmanager
def open_puffin(storage: Storage, name: str, *, file_bytes: int) -> Iterator[PuffinFile]:
    """A Puffin file while it is open. Raises as PuffinFile, and MissingFile."""
    with storage.open(name) as source:
        yield PuffinFile(spelled(storage, name), source, file_bytes=file_bytes)


def read_footer(storage: Storage, name: str) -> Footer:
    """What a Puffin file holds. Raises CorruptMetadata naming the file, MissingFile."""
    data = storage.read(name)
    return _footer(spelled(storage, name), pa.BufferReader(data), len(data), data[-_TAIL.size :])


def write_puffin(
    storage: Storage, name: str, blobs: Sequence[NewBlob], properties: Mapping[str, str]
) -> tuple[int, tuple[Blob, ...]]:
    """Write the blobs in their order, uncompressed. The size of the file, and where each blob is."""
    parts, placed, at = [MAGIC], [], len(MAGIC)
    for blob in blobs:
        written = Blob(blob.type, blob.fields, -1, -1, at, len(blob.content), None, blob.properties)
        placed.append(written)
        parts.append(blob.content)
        at += written.length
    payload = json.dumps({"blobs": [_to_json(blob) for blob in placed], "properties": dict(properties)}).encode()
    data = b"".join([*parts, MAGIC, payload, _TAIL.pack(len(payload), b"\0\0\0\0", MAGIC)])
    storage.put(name, data)
    return len(data), tuple(placed)


_TAIL: Final = struct.Struct("<i4s4s")
_COMPRESSED: Final = b"\x01\0\0\0"
_PIECE_BYTES: Final = 1 << 16


def _require_size(name: str, source: pa.NativeFile, expected: int) -> None:
    found = source.size()
    if found != expected:
        raise CorruptMetadata(name, f"{expected} bytes as its manifest says", str(found))


def _tail(source: pa.NativeFile, size: int) -> bytes:
    """The last bytes, as many as a footer ends in; fewer of a smaller file."""
    source.seek(max(0, size - _TAIL.size))
    return source.read(min(size, _TAIL.size))


def _is_bare(source: pa.NativeFile, tail: bytes) -> bool:
    """A file that has lost one of its ends still has the other."""
    if len(tail) < len(MAGIC) or tail.endswith(MAGIC):
        return False
    source.seek(0)
    return source.read(len(MAGIC)) != MAGIC


def _footer(name: str, source: pa.NativeFile, size: int, tail: bytes) -> Footer:
    if size < 2 * len(MAGIC) + _TAIL.size:
        raise CorruptMetadata(name, f"{MAGIC!r} and a footer", f"{size} bytes")
    length, flags, magic = _TAIL.unpack(tail)
    if magic != MAGIC or flags not in (b"\0\0\0\0", _COMPRESSED):
        raise CorruptMetadata(name, f"a footer that ends in known flags and {MAGIC!r}", "other bytes")
    start = size - _TAIL.size - length - len(MAGIC)
    if length < 0 or start < len(MAGIC):
        raise CorruptMetadata(name, f"a footer within {size} bytes", f"one of {length} bytes")
    DOCUMENT.require(length, name)
    source.seek(start)
    if source.read(len(MAGIC)) != MAGIC:
        raise CorruptMetadata(name, f"magic {MAGIC!r} at {start}, before the footer", "other bytes")
    payload = source.read(length)
    # From here on reading goes forward: an object's end came with its opening, and blobs come with its beginning.
    source.seek(0)
    if source.read(len(MAGIC)) != MAGIC:
        raise CorruptMetadata(name, f"magic {MAGIC!r} first", "other bytes")
    return _parsed(name, payload, flags == _COMPRESSED, start)


@lru_cache(maxsize=8)
def _parsed(name: str, payload: bytes, compressed: bool, start: int) -> Footer:  # noqa: FBT001
    """Remembered by content: a task asks for its data files in groups, whose vectors may lie in one file."""
    try:
        document = parse_object(_decompressed(name, payload) if compressed else payload, subject=name)
        blobs = tuple(_blob(each, start) for each in document["blobs"])
        return Footer(blobs, _texts(document.get("properties") or {}), start)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as failure:
        raise CorruptMetadata(name, "a Puffin footer", reason_of(failure)) from failure


def _decompressed(name: str, payload: bytes) -> bytes:
    """Piece by piece: Arrow allocates what it is asked for before it reads, and keeps that where the bytes turn
    out to be no LZ4. Raises RefusedTable for more than a document may have."""
    plain = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(payload), "lz4") as stream:
        while piece := stream.read(_PIECE_BYTES):
            plain += piece
            DOCUMENT.require(len(plain), name)
    return bytes(plain)


def _blob(raw: Mapping[str, Any], end: int) -> Blob:
    blob = Blob(
        _typed(raw["type"], str),
        tuple(_typed(each, int) for each in raw["fields"]),
        _typed(raw["snapshot-id"], int),
        _typed(raw["sequence-number"], int),
        _typed(raw["offset"], int),
        _typed(raw["length"], int),
        None if raw.get("compression-codec") is None else _typed(raw["compression-codec"], str),
        _texts(raw.get("properties") or {}),
    )
    if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > end:
        raise ValueError(f"a blob of {blob.length} bytes at {blob.offset}, outside of the first {end}")
    return blob


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{kind_of(value)}, expected {kind.__name__}")
    return value


def _texts(raw: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: _typed(value, str) for key, value in raw.items()}


def _to_json(blob: Blob) -> dict[str, Any]:
    return {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
        "properties": dict(blob.properties),
    }
