"""Avro container bytes <-> records by the spec's field names: fields are found by id, whatever a writer called them.

A schema has its fields renamed by their `field-id` before anything is decoded or encoded, as names are no part of the
bytes. No logical type is applied: values are what Avro stores, decimals and UUIDs bytes, times and dates numbers.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.avro_codecs import CODECS, FAILURES, MAX_BLOCK_BYTES, Codec

Record: TypeAlias = dict[str, Any]
Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """What the fields of a container are called here: by field id, and by a writer's name where it gives no id."""

    by_id: Mapping[int, str]
    by_name: Mapping[str, str]


def read_records(data: bytes, names: Names, *, subject: str) -> Iterator[Record]:
    """Every record of an object container file in order, decoded a block at a time.

    Raises CorruptMetadata naming `subject` where the bytes are no such file; a file that is cut exactly between two
    blocks cannot be told from a shorter one.
    """
    try:
        yield from _read(data, names, subject=subject)
    except _MALFORMED as error:
        found = f"{type(error).__name__}: {error}"
        raise CorruptMetadata(subject, "an Avro object container file", f"{found:.300}") from error


@dataclass(frozen=True, slots=True)
class Layout:
    """How records are written: the schema that the header shows, the names records have, the rest of the header."""

    schema: Schema
    names: Names
    codec: Codec
    metadata: Mapping[str, str]


def write_records(records: Iterable[Record], layout: Layout) -> bytes:
    """A whole container file; records are taken and encoded a block at a time. Equal arguments give equal bytes.

    Raises ValueError or TypeError for a record that the schema does not hold.
    """
    text = json.dumps(layout.schema, separators=(",", ":"))
    # A marker from what is written, not from a random source, makes a file a function of what it holds.
    sync = hashlib.blake2b(repr(layout.metadata).encode() + text.encode(), digest_size=_SYNC_BYTES).digest()
    meta = {_CODEC_KEY: layout.codec.name, _SCHEMA_KEY: text, **layout.metadata}
    header = {"magic": _MAGIC, "meta": {key: value.encode() for key, value in meta.items()}, "sync": sync}
    items = _array_of(renamed(layout.schema, layout.names))
    parts, pending = [_encode(_HEADER, header)], iter(records)
    while block := list(islice(pending, _BLOCK_RECORDS)):
        # Avro writes an array as its length, its items and a closing zero: between those, a block's content.
        content = _encode(items, block)[len(_encode(_LONG, len(block))) : -1]
        parts.append(_encode(_BLOCK, {"count": len(block), "content": layout.codec.pack(content), "sync": sync}))
    return b"".join(parts)


def renamed(schema: Schema, names: Names) -> Schema:
    """The schema with our names for its fields and without logical types.

    Raises ValueError for what no writer of manifests does: array items that take no bytes (a few bytes could claim
    any number of them), a record by reference (it could hold itself), and two fields of one record with one name.
    """
    return cast("Schema", _Renaming(names, frozenset(_fixed_names(schema))).of(schema))


@dataclass(frozen=True, slots=True)
class _Renaming:
    names: Names
    fixed: frozenset[str]

    def of(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return [self.of(branch) for branch in kind]
        if isinstance(kind, str):
            if kind not in _PRIMITIVES and kind not in self.fixed:
                raise ValueError(f"a type that is written out, found {kind!r:.80}")
            return kind
        if kind["type"] == "record":
            return self._record(kind)
        if kind["type"] == "array":
            return self._array(kind)
        if kind["type"] == "fixed":
            return {"type": "fixed", "name": kind["name"], "size": kind["size"]}
        # {"type": "int", "logicalType": "date"}, and the like. Avro's maps are in no manifest.
        return self.of(kind["type"])

    def _array(self, kind: Schema) -> Schema:
        items = self.of(kind["items"])
        if not _takes_bytes(items):
            raise ValueError(f"items that take bytes, found {kind!r:.80}")
        return {"type": "array", "items": items}

    def _record(self, kind: Schema) -> Schema:
        fields = [{"name": self._name(field), "type": self.of(field["type"])} for field in kind["fields"]]
        if len({field["name"] for field in fields}) != len(fields):
            raise ValueError(f"each field once, found {kind!r:.80}")
        return {"type": "record", "name": kind["name"], "fields": fields}

    def _name(self, field: Schema) -> str:
        number, found = field.get("field-id"), field["name"]
        if number is None:
            return self.names.by_name.get(found, f"_{found}")
        # Java takes an id that is a text for one, too (AvroSchemaUtil.toInt).
        return self.names.by_id.get(int(number), f"_{found}")


def _takes_bytes(kind: Any) -> bool:
    if isinstance(kind, dict) and kind["type"] == "record":
        return any(_takes_bytes(field["type"]) for field in kind["fields"])
    if isinstance(kind, dict) and kind["type"] == "fixed":
        return int(kind["size"]) > 0
    return isinstance(kind, dict | list) or kind in _PRIMITIVES[1:]


def _fixed_names(kind: Any) -> Iterator[str]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _fixed_names(branch)
    elif isinstance(kind, dict):
        if kind.get("type") == "fixed":
            yield kind["name"]
        for part in (*kind.get("fields", ()), kind.get("items"), kind.get("values"), kind.get("type")):
            yield from _fixed_names(part)


_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_SCHEMA_KEY: Final = "avro.schema"
_CODEC_KEY: Final = "avro.codec"
# Java's blocks are of 64 KB; an entry takes about a hundred bytes for every four columns.
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

# Everything that fastavro and the codecs raise on bytes or schemas that are not what they claim to be.
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
    SchemaParseException,
    UnknownType,
    *FAILURES,
)


def _read(data: bytes, names: Names, *, subject: str) -> Iterator[Record]:
    body = io.BytesIO(data)
    header = _decode(_HEADER, body)
    if header["magic"] != _MAGIC:
        raise CorruptMetadata(subject, f"magic {_MAGIC!r}", repr(header["magic"]))
    meta: dict[str, bytes] = header["meta"]
    codec = CODECS.get(meta.pop(_CODEC_KEY, b"null").decode())
    if codec is None:
        raise CorruptMetadata(subject, f"a codec of {', '.join(CODECS)}", "another one")
    items = _items(meta.pop(_SCHEMA_KEY), frozenset(names.by_id.items()), frozenset(names.by_name.items()))
    if items is None:
        raise CorruptMetadata(subject, "a record schema", "another one")
    while body.tell() < len(data):
        block = _decode(_BLOCK, body)
        if block["sync"] != header["sync"]:
            raise CorruptMetadata(subject, f"sync marker {header['sync'].hex()}", block["sync"].hex())
        yield from _block_records(items, block["count"], codec.unpack(block["content"]), subject=subject)


# The manifests of a table have a schema or two, and reading one takes longer than a small manifest.
@lru_cache(maxsize=64)
def _items(schema: bytes, by_id: frozenset[tuple[int, str]], by_name: frozenset[tuple[str, str]]) -> Schema | None:
    """What a block's records are decoded by; None for a schema of no records."""
    told = json.loads(schema)
    if not isinstance(told, dict) or told.get("type") != "record":
        return None
    return _array_of(renamed(told, Names(dict(by_id), dict(by_name))))


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
    return cast("Schema", fastavro.parse_schema({"type": "array", "items": schema}))


def _decode(schema: Any, data: io.BytesIO) -> Any:
    return fastavro.schemaless_reader(data, schema, None)


def _encode(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value, strict=True)
    return out.getvalue()
