"""Avro container bytes <-> raw records. What we do not understand of a record is written back as it was read.

Records are plain dicts by field name; a union is the value of its branch. Values are what Avro stores, no
logical type applied: the codec sees the schema without "logicalType" and the header keeps it. So
`_CREATION_TIME` stays the int that Paimon wrote (milliseconds of the writer's wall clock, as if it were UTC),
which no time zone can shift on its way through us.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import fastavro
import zstandard
from fastavro.schema import SchemaParseException, UnknownType

from nightkeep.errors import CorruptMetadata

Record: TypeAlias = dict[str, Any]
Schema: TypeAlias = dict[str, Any]

# Far above what any writer puts in a block, far below what would hurt: a bound on hostile compression.
MAX_BLOCK_BYTES: Final = 1 << 28


@dataclass(frozen=True, slots=True)
class Container:
    """One object container file: the writer's schema as it stands in the header, and every record in order.

    `metadata` is the rest of the header: what is neither the schema nor the codec.
    """

    schema: Schema
    codec: str
    records: tuple[Record, ...]
    metadata: Mapping[str, bytes]


def read_container(data: bytes, *, subject: str) -> Container:
    """Decode a whole container file of null, deflate or zstandard blocks.

    Raises CorruptMetadata naming `subject` for anything else. A file cut exactly between two blocks cannot be
    told from a shorter one: compare its size with what metadata says.
    """
    try:
        return _read(data, subject=subject)
    except _MALFORMED as error:
        found = f"{type(error).__name__}: {error}"
        raise CorruptMetadata(subject, "an Avro object container file", found) from error


def write_container(records: Iterable[Mapping[str, Any]], schema: Schema, codec: str = "zstandard") -> bytes:
    """Encode `records` under `schema`, which the header carries unchanged.

    `codec` is an Avro codec name or a value of Paimon's `manifest.compression` (zstd, none). Equal arguments
    give equal bytes. A field that a record lacks takes the schema's default. Raises ValueError for a codec we
    cannot write, a field that is missing without a default and one the schema does not name: data would be
    lost without a word.
    """
    name = _CODEC_NAMES.get(codec.lower(), codec.lower())
    if name not in _CODECS:
        raise ValueError(f"Avro codec: expected one of {', '.join(_CODECS)}, found {codec}")
    compress = _CODECS[name].compress
    text = json.dumps(schema, separators=(",", ":")).encode()
    # A marker from the schema, not from a random source, makes a file a function of what it holds.
    sync = hashlib.blake2b(text, digest_size=_SYNC_BYTES).digest()
    meta = {_CODEC_KEY: name.encode(), _SCHEMA_KEY: text}
    items = _array_of(schema)
    pending = list(records)
    parts = [_encode(_HEADER, {"magic": _MAGIC, "meta": meta, "sync": sync})]
    for start in range(0, len(pending), _BLOCK_RECORDS):
        block = pending[start : start + _BLOCK_RECORDS]
        # Avro writes an array as its length, its items and a closing zero: between those, a block's content.
        content = _encode(items, block)[len(_encode(_LONG, len(block))) : -1]
        parts.append(_encode(_BLOCK, {"count": len(block), "content": compress(content), "sync": sync}))
    return b"".join(parts)


def _inflate(content: bytes) -> bytes:
    # Avro's deflate has neither header nor checksum (negative window bits).
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, MAX_BLOCK_BYTES)


def _deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def _unzstd(content: bytes) -> bytes:
    # Java's frames do not state their size, so only the streaming form reads them.
    with zstandard.ZstdDecompressor().stream_reader(content) as stream:
        return stream.read(MAX_BLOCK_BYTES)


def _zstd(content: bytes) -> bytes:
    # Paimon's default for file.compression.zstd-level, which its manifests follow.
    return zstandard.ZstdCompressor(level=1).compress(content)


def _same(content: bytes) -> bytes:
    return content


@dataclass(frozen=True, slots=True)
class _Codec:
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


_CODECS: Final[Mapping[str, _Codec]] = {
    "null": _Codec(_same, _same),
    "deflate": _Codec(_deflate, _inflate),
    "zstandard": _Codec(_zstd, _unzstd),
}
# The spelling of Paimon's manifest.compression option.
_CODEC_NAMES: Final[Mapping[str, str]] = {"zstd": "zstandard", "none": "null"}


_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_SCHEMA_KEY: Final = "avro.schema"
_CODEC_KEY: Final = "avro.codec"
# Avro's default block is 64 KB; a few hundred bytes make a manifest entry.
_BLOCK_RECORDS: Final = 256

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

# Everything that fastavro, zlib and zstandard raise on bytes or schemas that are not what they claim to be.
_MALFORMED: Final = (
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    StopIteration,
    struct.error,
    zlib.error,
    zstandard.ZstdError,
    SchemaParseException,
    UnknownType,
)


def _read(data: bytes, *, subject: str) -> Container:
    body = io.BytesIO(data)
    header = _decode(_HEADER, body)
    if header["magic"] != _MAGIC:
        raise CorruptMetadata(subject, f"magic {_MAGIC!r}", repr(header["magic"]))
    meta: dict[str, bytes] = header["meta"]
    codec = meta.pop(_CODEC_KEY, b"null").decode()
    if codec not in _CODECS:
        raise CorruptMetadata(subject, f"a codec of {', '.join(_CODECS)}", codec)
    schema = json.loads(meta.pop(_SCHEMA_KEY))
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise CorruptMetadata(subject, "a record schema", f"{schema!r:.80}")
    items = _array_of(schema)
    records: list[Record] = []
    while body.tell() < len(data):
        block = _decode(_BLOCK, body)
        if block["sync"] != header["sync"]:
            raise CorruptMetadata(subject, f"sync marker {header['sync'].hex()}", block["sync"].hex())
        content = _CODECS[codec].decompress(block["content"])
        records += _block_records(items, block["count"], content, subject=subject)
    return Container(schema, codec, tuple(records), meta)


def _block_records(items: Schema, count: int, content: bytes, *, subject: str) -> list[Record]:
    # A record takes a byte at least, so more of them than bytes is a lie that would cost time and memory.
    if not 0 <= count <= len(content) < MAX_BLOCK_BYTES:
        raise CorruptMetadata(subject, f"records in a block of {len(content)} bytes", f"{count} records")
    array = io.BytesIO(_encode(_LONG, count) + content + (b"\0" if count else b""))
    records: list[Record] = _decode(items, array)
    if len(records) != count or array.read(1):
        raise CorruptMetadata(subject, f"{count} records in the block", "bytes of more")
    return records


def _array_of(schema: Schema) -> Schema:
    try:
        return cast("Schema", fastavro.parse_schema({"type": "array", "items": _without_logical_types(schema)}))
    except (SchemaParseException, UnknownType) as error:
        raise ValueError(f"Avro schema: {error}") from error


def _decode(schema: Any, data: io.BytesIO) -> Any:
    return fastavro.schemaless_reader(data, schema, None)


def _encode(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
    return out.getvalue()


def _without_logical_types(schema: Any) -> Any:
    """The schema as Avro stores it; defaults are untouched.

    Raises ValueError for items that take no bytes: a few bytes could claim any number of them.
    """
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if (schema.get("type") == "record" and not schema.get("fields")) or schema.get("items") == "null":
        raise ValueError(f"a type of no bytes: {schema!r:.80}")
    bare = {key: value for key, value in schema.items() if key != "logicalType"}
    for key in ("type", "items", "values"):
        if key in bare:
            bare[key] = _without_logical_types(bare[key])
    if isinstance(bare.get("fields"), list):
        bare["fields"] = [_without_logical_types(field) for field in bare["fields"]]
    return bare
