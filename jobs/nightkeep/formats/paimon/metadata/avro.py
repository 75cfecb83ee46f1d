"""Avro container bytes <-> raw records. Fields of a record that we do not know are written back unchanged.

Records are plain dicts by field name; a union is the value of its branch. Values are as Avro stores them, without
logical types: the codec gets the schema without "logicalType", and the header keeps it. So `_CREATION_TIME` stays the
int that Paimon wrote (milliseconds of the writer's wall clock, as if it were UTC), and no time zone can shift it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import zstandard
from fastavro.schema import SchemaParseException, UnknownType

from nightkeep.encodings.avro_codecs import CODECS, Codec
from nightkeep.encodings.avro_container import (
    AvroHeader,
    Record,
    array_of,
    container_bytes,
    open_container,
    well_formed,
)
from nightkeep.encodings.avro_schemas import AvroType, Schema, root_of
from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.paimon.metadata.manifest_fields import Missing, missing_fields
from nightkeep.formats.paimon.metadata.manifest_types import RecordKind, require_types
from nightkeep.model import digest_of

FILE_NAME: Final = "nightkeep.file"
"""The entry of a header that has the file's name. Readers ignore it."""
RECORDS: Final = "nightkeep.records"
"""The entry that has the number of the file's records, as evidence that none was cut off."""


@dataclass(frozen=True, slots=True)
class Container:
    """One object container file: the writer's schema of a record as the header has it, and every record in order.

    A record has the fields of its schema and, as nulls, those that later releases added (manifest_fields).
    `metadata` is the rest of the header, without schema and codec. `digest` is of the file's bytes.
    """

    schema: Schema
    codec: str
    records: tuple[Record, ...]
    metadata: Mapping[str, bytes]
    digest: str = field(default="", compare=False)


def read_container(data: bytes, *, subject: str, kind: RecordKind | None = None) -> Container:
    """Decode a whole container file of records of a `kind`. Blocks are null, deflate, snappy or zstandard.

    Raises CorruptMetadata naming `subject` for anything else. A file cut exactly between two blocks looks like a
    shorter valid file: compare its size with the metadata.
    """
    with well_formed(subject):
        container = open_container(data, _CODECS, subject=subject)
        schema, items, missing = _parsed(container.schema, kind)
        records = tuple(container.records(items))
        if None in records:
            raise CorruptMetadata(subject, "records", "null for a record")
        if missing is not None:
            missing.fill(records)
    return Container(schema, container.codec.name, records, container.metadata, digest_of(data))


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a file: records and uncompressed bytes of each. `by_java`: its schema is Paimon Java's."""

    sizes: tuple[tuple[int, int], ...]
    by_java: bool


def read_blocks(data: bytes, *, subject: str) -> Blocks:
    """Raises CorruptMetadata as `read_container`."""
    with well_formed(subject):
        container = open_container(data, _CODECS, subject=subject)
        return Blocks(tuple(container.block_sizes()), b"org.apache.paimon.avro.generated" in container.schema)


# A table's manifests share one or two schemas, and parsing a schema takes longer than reading a small manifest.
@lru_cache(maxsize=64)
def _parsed(text: bytes, kind: RecordKind | None) -> tuple[Schema, Schema, Missing | None]:
    """The record's schema as written, the one to decode records with, and what they lack. Raises ValueError."""
    root = root_of(text)
    if kind is not None:
        require_types(root.record, kind)
    return root.record, _items(root.kind), None if kind is None else missing_fields(root.record, kind)


def write_container(
    records: Sequence[Record], schema: Schema, codec: str = "zstandard", *, name: str | None = None
) -> bytes:
    """Encode `records` under `schema`, which the header carries unchanged. With the file's `name` the header has
    that as well, and the number of records.

    `codec` is an Avro codec name or a value of Paimon's `manifest.compression` (zstd, none). Equal arguments give equal
    bytes. A field that a record lacks takes the schema's default. Raises ValueError for an unknown codec, a missing
    field without a default, and a field that the schema lacks, because its data would be lost silently.
    """
    packing = _CODEC_NAMES.get(codec.lower(), codec.lower())
    if packing not in _CODECS:
        raise ValueError(f"Avro codec: expected one of {', '.join(_CODECS)}, found {codec}")
    metadata = {} if name is None else {FILE_NAME: name.encode(), RECORDS: str(len(records)).encode()}
    return container_bytes(records, _items(schema), _CODECS[packing], AvroHeader(schema, metadata))


def _zstd(content: bytes) -> bytes:
    # Paimon's default for file.compression.zstd-level, which its manifests follow.
    return zstandard.ZstdCompressor(level=1).compress(content)


_CODECS: Final[Mapping[str, Codec]] = {
    "null": CODECS["null"],
    "deflate": CODECS["deflate"],
    "snappy": CODECS["snappy"],
    "zstandard": replace(CODECS["zstandard"], pack=_zstd),
}
# Values of Paimon's manifest.compression option.
_CODEC_NAMES: Final[Mapping[str, str]] = {"zstd": "zstandard", "none": "null"}


def _items(schema: AvroType) -> Schema:
    try:
        return array_of(_without_logical_types(schema))
    except (SchemaParseException, UnknownType) as error:
        raise ValueError("an Avro schema that can be read") from error


def _without_logical_types(schema: AvroType) -> AvroType:
    """The schema without logical types. Defaults are unchanged.

    Raises ValueError for array items that take no bytes, because a few bytes could claim any number of them.
    """
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if (schema.get("type") == "record" and not schema.get("fields")) or schema.get("items") == "null":
        raise ValueError(f"a type of no bytes: {kind_of(schema)}")
    bare = {key: value for key, value in schema.items() if key != "logicalType"}
    for key in ("type", "items", "values"):
        if key in bare:
            bare[key] = _without_logical_types(bare[key])
    if isinstance(bare.get("fields"), list):
        bare["fields"] = [_without_logical_types(field) for field in bare["fields"]]
    return bare
