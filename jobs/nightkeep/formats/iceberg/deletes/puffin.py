"""Puffin file bytes <-> blobs and a JSON footer with the offset of each blob (Iceberg's Puffin spec).

PFA1 blob ... PFA1 payload payload-size(i32 LE) flags(4) PFA1
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar

import pyarrow as pa

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.limits import DOCUMENT
from nightkeep.model.json_values import JsonObject, JsonValue
from nightkeep.storage import Storage, spelled

Held = TypeVar("Held")

MAGIC: Final = b"PFA1"


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob's entry in the footer: `offset` in bytes from the start of the file, `length` in bytes as stored."""

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
    """Blobs in the footer's order, properties of the file, and the offset where the footer starts."""

    blobs: tuple[Blob, ...]
    properties: Mapping[str, str]
    start: int


@dataclass(frozen=True, slots=True)
class NewBlob:
    """A blob to write unchanged. The footer gives -1 as snapshot id and sequence number: those of the commit."""

    type: str
    fields: tuple[int, ...]
    content: bytes
    properties: Mapping[str, str]


class PuffinFile:
    """An open Puffin file. The footer is read once, a blob when it is asked for.

    `is_bare` marks a file with neither magic bytes nor footer, as older DuckDB writes for vectors: only manifests give
    the offsets of its blobs. Raises CorruptMetadata naming the file for a size other than `file_bytes` or a footer
    that cannot be parsed.
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
        # An empty blob has the same offset as the next blob: the longer one must win.
        for blob in sorted(footer.blobs, key=lambda each: each.length, reverse=True):
            self._by_offset.setdefault(blob.offset, blob)

    def blob(self, offset: int) -> tuple[Blob, bytes]:
        """The footer entry and the stored bytes of the blob at `offset`. Raises CorruptMetadata if there is none."""
        blob = self._by_offset.get(offset)
        if blob is None:
            raise CorruptMetadata(self._name, f"a blob at offset {offset}", "none in the footer")
        self._source.seek(offset)
        return blob, self._source.read(blob.length)

    def bare(self, offset: int, length: int) -> bytes:
        """Bytes of a file without a footer. Raises CorruptMetadata if the file is too short."""
        if min(offset, length) < 0 or offset + length > self._bytes:
            raise CorruptMetadata(self._name, f"{length} bytes at offset {offset}", f"{self._bytes} bytes in all")
        self._source.seek(offset)
        return self._source.read(length)


@contextmanager
def open_puffin(storage: Storage, name: str, *, file_bytes: int) -> Iterator[PuffinFile]:
    """A Puffin file that is closed at the end of the context. Raises as PuffinFile, and MissingFile."""
    with storage.open(name) as source:
        yield PuffinFile(spelled(storage, name), source, file_bytes=file_bytes)


def read_footer(storage: Storage, name: str) -> Footer:
    """The footer of a Puffin file. Raises CorruptMetadata naming the file, MissingFile."""
    data = storage.read(name)
    return _footer(spelled(storage, name), pa.BufferReader(data), len(data), data[-_TAIL.size :])


def write_puffin(
    storage: Storage, name: str, blobs: Sequence[NewBlob], properties: Mapping[str, str]
) -> tuple[int, tuple[Blob, ...]]:
    """Write the blobs in their order, uncompressed. Returns the size of the file in bytes and the footer's blobs."""
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
        raise CorruptMetadata(name, f"{expected} bytes as its manifest states", str(found))


def _tail(source: pa.NativeFile, size: int) -> bytes:
    """The last bytes of the file, as many as the fixed end of a footer has, or fewer if the file is smaller."""
    source.seek(max(0, size - _TAIL.size))
    return source.read(min(size, _TAIL.size))


def _is_bare(source: pa.NativeFile, tail: bytes) -> bool:
    """Whether magic bytes are missing at both ends. A file that lacks them at one end only is damaged, not bare."""
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
    # Object storage prefetches: the end of an object was read when it was opened, blobs are read from the start.
    source.seek(0)
    if source.read(len(MAGIC)) != MAGIC:
        raise CorruptMetadata(name, f"magic {MAGIC!r} first", "other bytes")
    return _parsed(name, payload, flags == _COMPRESSED, start)


@lru_cache(maxsize=8)
def _parsed(name: str, payload: bytes, compressed: bool, start: int) -> Footer:  # noqa: FBT001
    """The footer of these bytes. Cached by content: vectors of several groups of data files may share one file."""
    try:
        document = parse_object(_decompressed(name, payload) if compressed else payload, subject=name)
        blobs = tuple(_blob(each, start) for each in _typed(document["blobs"], list))
        return Footer(blobs, _texts(document.get("properties") or {}), start)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError) as failure:
        raise CorruptMetadata(name, "a Puffin footer", reason_of(failure)) from failure


def _decompressed(name: str, payload: bytes) -> bytes:
    """The decompressed footer. Raises RefusedTable if it is larger than a document may be.

    Decompresses in pieces: Arrow allocates the requested size before it reads, and does not free it if the bytes are
    not LZ4.
    """
    plain = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(payload), "lz4") as stream:
        while piece := stream.read(_PIECE_BYTES):
            plain += piece
            DOCUMENT.require(len(plain), name)
    return bytes(plain)


def _blob(raw: JsonObject, end: int) -> Blob:
    blob = Blob(
        _typed(raw["type"], str),
        tuple(_typed(each, int) for each in _typed(raw["fields"], list)),
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


def _typed(value: JsonValue, kind: type[Held]) -> Held:
    # A bool is an int in Python, but not in JSON.
    if not isinstance(value, kind) or type(value) is not kind:
        raise ValueError(f"{kind_of(value)}, expected {kind.__name__}")
    return value


def _texts(raw: JsonValue) -> Mapping[str, str]:
    return {key: _typed(value, str) for key, value in _typed(raw, dict).items()}


def _to_json(blob: Blob) -> JsonObject:
    return {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
        "properties": dict(blob.properties),
    }
