"""Avro object container bytes <-> records (Avro specification, "Object Container Files"); schemas are the caller's.

A record is a plain dict by field name, a union the value of its branch. Every block is bounded, and holds the records
that it counts, no more and no fewer.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from operator import gt
from typing import Any, Final, TypeAlias, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from nightkeep.encodings.avro_codecs import FAILURES, Codec
from nightkeep.encodings.avro_schemas import AvroType, Schema, shape_of
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.limits import BLOCK, DECODED, RECORDS, UNPACKED, WATCH

Record: TypeAlias = dict[str, Any]
"""A decoded record, by field name. Its schema states what the values are."""


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """The header of a file: the schema unchanged, and the metadata other than schema and codec."""

    schema: Schema
    metadata: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StoredContainer:
    """A container with its header parsed: the text of its schema, its codec and its other metadata."""

    subject: str
    schema: bytes
    codec: Codec
    metadata: Mapping[str, bytes]
    _sync: bytes
    _blocks: bytes
    _ratio: int

    def records(self, items: Schema) -> Iterator[Record]:
        """Yield every record in order, decoded a block at a time. `items` is `array_of` the reader's schema.

        Use it within `well_formed`. A file truncated between two blocks is not detected.
        """
        for count, content in self._contents():
            yield from _block_records(items, count, content, subject=self.subject)

    def as_one_block(self, schema: Schema, part: range | None = None) -> tuple[bytes, int]:
        """The file with `schema` and all records in one uncompressed block, for another reader; and the record count.

        `part`: the bytes of some blocks that follow each other, as `blocks` returns them; None for all. Use it within
        `well_formed`. Some writers put every record into its own block.
        """
        blocks = [*self._contents(part)]
        count = sum(number for number, _ in blocks)
        meta = {_CODEC_KEY: b"null", _SCHEMA_KEY: json.dumps(schema).encode()}
        header = _encode(_HEADER, {"magic": _MAGIC, "meta": meta, "sync": self._sync})
        block = {"count": count, "content": b"".join(content for _, content in blocks), "sync": self._sync}
        return header + _encode(_BLOCK, block), count

    def blocks(self) -> Iterator[tuple[int, range]]:
        """The number of records of each block, and where its bytes are, without unpacking it. Use it within
        `well_formed`."""
        body = io.BytesIO(self._blocks)
        while body.tell() < len(self._blocks):
            start = body.tell()
            count, _ = self._stored(body)
            yield count, range(start, body.tell())

    def block_sizes(self) -> Iterator[tuple[int, int]]:
        """Records and unpacked bytes of each block. Use it within `well_formed`."""
        return ((count, len(content)) for count, content in self._contents())

    def _stored(self, body: io.BytesIO) -> tuple[int, bytes]:
        """The number of records of the next block, and their packed bytes."""
        block = _decode(_BLOCK, body)
        if block["sync"] != self._sync:
            raise CorruptMetadata(self.subject, "the sync marker of its header", "another")
        count: int = block["count"]
        if count < 0:
            raise CorruptMetadata(self.subject, "records in a block", f"{count} records")
        return count, block["content"]

    def _contents(self, part: range | None = None) -> Iterator[tuple[int, bytes]]:
        """The number of records of each block, and their bytes."""
        body = io.BytesIO(self._blocks)
        body.seek(0 if part is None else part.start)
        stop = len(self._blocks) if part is None else part.stop
        records = unpacked = 0
        most = min(BLOCK.value, DECODED.value // self._ratio), RECORDS.value, UNPACKED.value
        while body.tell() < stop:
            count, packed = self._stored(body)
            content = self.codec.unpack(packed)
            # A record takes at least one byte. A larger count is invalid, and would cost time and memory.
            if count > len(content) or (content and not count):
                raise CorruptMetadata(self.subject, f"records in a block of {len(content)} bytes", f"{count} records")
            records, unpacked = records + count, unpacked + len(content)
            if any(map(gt, (len(content), records, unpacked), most)):
                self._require_room(len(content), records, unpacked)
            WATCH.took(len(content), self.subject)
            yield count, content

    def _require_room(self, block_bytes: int, records: int, unpacked: int) -> None:
        BLOCK.require(block_bytes, self.subject)
        DECODED.require(block_bytes * self._ratio, self.subject)
        RECORDS.require(records, self.subject)
        UNPACKED.require(unpacked, self.subject)


def open_container(data: bytes, codecs: Mapping[str, Codec], *, subject: str) -> StoredContainer:
    """Read the header of a file that uses one of these codecs. Use it within `well_formed`.

    Raises ValueError for a schema that cannot be decoded with.
    """
    body = io.BytesIO(data)
    header = _decode(_HEADER, body)
    if header["magic"] != _MAGIC:
        raise CorruptMetadata(subject, f"magic {_MAGIC!r}", _OTHERS.get(header["magic"], "other bytes"))
    meta: dict[str, bytes] = header["meta"]
    name = meta.pop(_CODEC_KEY, b"null").decode()
    if name not in codecs:
        raise CorruptMetadata(subject, f"a codec of {', '.join(codecs)}", kind_of(name))
    schema = meta.pop(_SCHEMA_KEY)
    shape = shape_of(schema)
    if shape is None:
        raise CorruptMetadata(subject, "a record schema", kind_of(schema))
    return StoredContainer(subject, schema, codecs[name], meta, header["sync"], body.read(), shape.ratio)


# Other bytes may be data: they are not shown in messages.
_OTHERS: Final = {b"PAR1": "that of a Parquet file", b"PFA1": "that of a Puffin file", b"ORC": "that of an ORC file"}


@contextmanager
def well_formed(subject: str) -> Iterator[None]:
    """Raise CorruptMetadata naming `subject` for whatever fastavro and the codecs raise on bytes or schemas."""
    try:
        yield
    except _MALFORMED as error:
        # Messages of these two contain unquoted names of types.
        named = isinstance(error, SchemaParseException | UnknownType)
        found = type(error).__name__ if named else reason_of(error)
        raise CorruptMetadata(subject, "an Avro object container file", found) from error


def container_bytes(records: Iterable[Mapping[str, object]], items: Schema, codec: Codec, header: AvroHeader) -> bytes:
    """The bytes of a container file. Records are encoded a block at a time. Equal arguments give equal bytes.

    `items` is `array_of` the schema of the records. A missing field gets the schema's default. Raises ValueError if
    there is none, ValueError or TypeError for a value that does not fit the schema.
    """
    text = json.dumps(header.schema, separators=(",", ":")).encode()
    meta = {_CODEC_KEY: codec.name.encode(), _SCHEMA_KEY: text, **header.metadata}
    # The sync marker is a hash of header and schema, not random, so that equal arguments give equal bytes.
    sync = hashlib.blake2b(repr(header.metadata).encode() + text, digest_size=_SYNC_BYTES).digest()
    parts, pending = [_encode(_HEADER, {"magic": _MAGIC, "meta": meta, "sync": sync})], iter(records)
    number = _FIRST_RECORDS
    while block := list(islice(pending, number)):
        # Avro encodes an array as length, items and a zero. The items are the content of a block.
        content = _encode(items, block)[len(_encode(_LONG, len(block))) : -1]
        parts.append(_encode(_BLOCK, {"count": len(block), "content": codec.pack(content), "sync": sync}))
        # As many records as fit into a block by the size of the last block's records.
        number = max(1, min(_BLOCK_RECORDS, len(block) * _BLOCK_BYTES // max(1, len(content))))
    return b"".join(parts)


def array_of(schema: AvroType) -> Schema:
    """The array schema to encode a block's records with. Raises fastavro's SchemaParseException and UnknownType."""
    return cast("Schema", fastavro.parse_schema({"type": "array", "items": schema}))


_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_SCHEMA_KEY: Final = "avro.schema"
_CODEC_KEY: Final = "avro.codec"
# Java's blocks are of 64 KB; an entry of a manifest takes some hundred bytes, or 500 KB with bounds of 10,000 columns.
_BLOCK_RECORDS: Final = 256
_FIRST_RECORDS: Final = 16
_BLOCK_BYTES: Final = 1 << 20

_LONG: Final = fastavro.parse_schema("long")
_SYNC: Final = {"type": "fixed", "name": "Sync", "size": _SYNC_BYTES}
_HEADER: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": len(_MAGIC)}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": _SYNC},
        ],
    }
)
_BLOCK: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Block",
        "fields": [
            {"name": "count", "type": "long"},
            {"name": "content", "type": "bytes"},
            {"name": "sync", "type": _SYNC},
        ],
    }
)

# Everything that fastavro and the codecs raise for invalid bytes or schemas.
_MALFORMED: Final = (
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    struct.error,
    SchemaParseException,
    UnknownType,
    *FAILURES,
)


def _block_records(items: Schema, count: int, content: bytes, *, subject: str) -> list[Record]:
    array = io.BytesIO(_encode(_LONG, count) + content + (b"\0" if count else b""))
    records: list[Record] = _decode(items, array)
    if len(records) != count or array.read(1):
        raise CorruptMetadata(subject, f"{count} records in the block", "bytes of more")
    return records


def _decode(schema: AvroType, data: io.BytesIO) -> Any:
    try:
        return fastavro.schemaless_reader(data, schema, None)
    except StopIteration as error:
        # A generator would turn a StopIteration into a RuntimeError.
        raise EOFError("no more bytes") from error


def _encode(schema: AvroType, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
    return out.getvalue()
