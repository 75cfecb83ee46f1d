"""Avro container bytes <-> records keyed by the spec's field names. Fields are matched by id, not by a writer's name.

The fields of a schema are renamed by their `field-id` before decoding or encoding: names are not part of the bytes. No
logical type is applied: decimals and UUIDs are bytes, times and dates are numbers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

import polars as pl

from nightkeep.encodings.avro_codecs import CODECS, Codec
from nightkeep.encodings.avro_container import (
    AvroHeader,
    Record,
    StoredContainer,
    array_of,
    container_bytes,
    open_container,
    well_formed,
)
from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.formats.iceberg.metadata.avro_fixed import fits, sizes_of, with_lengths


@dataclass(frozen=True, slots=True)
class Names:
    """Our names for the fields of a container: by field id, or by the writer's name for fields without an id."""

    by_id: Mapping[int, str]
    by_name: Mapping[str, str]


def read_records(data: bytes, names: Names, *, subject: str) -> Iterator[Record]:
    """Yield every record of an object container file in order, decoded a block at a time.

    All records are decoded at once if the schema has a type with two encodings (avro_fixed): exactly one must fit.
    Raises CorruptMetadata naming `subject` for bytes that are no container file. A file truncated between two blocks
    is not detected.
    """
    with well_formed(subject):
        container = open_container(data, CODECS, subject=subject)
        ways = _ways(container.schema, frozenset(names.by_id.items()), frozenset(names.by_name.items()))
        if ways is None:
            raise CorruptMetadata(subject, "a record schema", "another one")
        yield from container.records(ways.items) if ways.lengthened is None else _in_one_way(container, ways)


def read_header(data: bytes, *, subject: str) -> AvroHeader:
    """The header of a container: its schema as it stands, and its metadata without the codec. Raises CorruptMetadata as
    `read_records`."""
    with well_formed(subject):
        container = open_container(data, CODECS, subject=subject)
        return AvroHeader(json.loads(container.schema), container.metadata)


def read_frame(data: bytes, names: Names, *, subject: str) -> pl.DataFrame | None:
    """The records of `read_records` as columns, read by Polars; None if Polars cannot read the file.

    None does not mean that the file is damaged. Raises CorruptMetadata as `read_records`, but not for the content of
    blocks.
    """
    with well_formed(subject):
        container = open_container(data, CODECS, subject=subject)
        schema = _renamed(container.schema, frozenset(names.by_id.items()), frozenset(names.by_name.items()))
        if schema is None or sizes_of(json.loads(container.schema)):
            return None
        block, count = container.as_one_block(schema)
    try:
        frame = pl.read_avro(io.BytesIO(block))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    return frame if len(frame) == count else None


@dataclass(frozen=True, slots=True)
class AvroLayout:
    """How records are written: the schema in the header, the keys of records, the codec, the rest of the header."""

    schema: Schema
    names: Names
    codec: Codec
    metadata: Mapping[str, str]


def write_records(records: Iterable[Record], layout: AvroLayout) -> bytes:
    """The bytes of a container file. Records are encoded a block at a time. Equal arguments give equal bytes.

    Raises ValueError or TypeError for a record that does not fit the schema.
    """
    items = array_of(renamed(layout.schema, layout.names))
    metadata = {key: value.encode() for key, value in layout.metadata.items()}
    return container_bytes(records, items, layout.codec, AvroHeader(layout.schema, metadata))


def codec_of(properties: Mapping[str, str]) -> Codec:
    """The codec of new manifests by the table's properties; the default is gzip, which Avro calls deflate.

    Java reads the first of these properties alone. pyiceberg reads the second, which is for data files in Java: a value
    that is no codec is ignored there, as Java ignores it. Raises RefusedTable for a codec of the first property that
    Iceberg does not name: Java then reads, and fails to write.
    """
    own, others = (properties.get(key) for key in _CODEC_PROPERTIES)
    if own is not None and own.lower() not in _OF_PROPERTY:
        feature = f"{_CODEC_PROPERTIES[0]} is {own!r}"
        raise RefusedTable("manifests", feature, f"set it to one of {', '.join(_OF_PROPERTY)}")
    name = others if own is None else own
    return CODECS[_OF_PROPERTY.get((name or "gzip").lower(), "deflate")]


def renamed(schema: Schema, names: Names) -> Schema:
    """The schema with our names for its fields and without logical types.

    Raises ValueError for schemas that no writer of manifests uses: array items of no bytes (a few bytes could claim
    any number of them), a record by reference (it could contain itself), and two fields of a record with one name.
    """
    return cast("Schema", _Renaming(names, frozenset(_fixed_names(schema))).of(schema))


@dataclass(frozen=True, slots=True)
class _Renaming:
    names: Names
    fixed: frozenset[str]

    def of(self, kind: AvroType) -> AvroType:
        if isinstance(kind, list):
            return [self.of(branch) for branch in kind]
        if isinstance(kind, str):
            if kind not in _PRIMITIVES and kind not in self.fixed:
                raise ValueError(f"a type that is written out, found {kind_of(kind)}")
            return kind
        if kind["type"] == "record":
            return self._record(kind)
        if kind["type"] == "array":
            return self._array(kind)
        if kind["type"] == "fixed":
            return {"type": "fixed", "name": kind["name"], "size": kind["size"]}
        # Such as {"type": "int", "logicalType": "date"}. Manifests have no Avro maps.
        return self.of(kind["type"])

    def _array(self, kind: Schema) -> Schema:
        items = self.of(kind["items"])
        if not _takes_bytes(items):
            raise ValueError(f"items that take bytes, found {kind_of(kind)}")
        return {"type": "array", "items": items}

    def _record(self, kind: Schema) -> Schema:
        fields = [{"name": self._name(field), "type": self.of(field["type"])} for field in kind["fields"]]
        if len({field["name"] for field in fields}) != len(fields):
            raise ValueError(f"each field once, found {kind_of(kind)}")
        return {"type": "record", "name": kind["name"], "fields": fields}

    def _name(self, field: Schema) -> str:
        number, name = field.get("field-id"), field["name"]
        if number is None:
            return self.names.by_name.get(name, f"_{name}")
        # Like Java, accept an id that is a string (AvroSchemaUtil.toInt).
        return self.names.by_id.get(int(number), f"_{name}")


def _takes_bytes(kind: AvroType) -> bool:
    if isinstance(kind, dict) and kind["type"] == "record":
        return any(_takes_bytes(field["type"]) for field in kind["fields"])
    if isinstance(kind, dict) and kind["type"] == "fixed":
        return int(kind["size"]) > 0
    return isinstance(kind, dict | list) or kind in _PRIMITIVES[1:]


def _fixed_names(kind: AvroType | None) -> Iterator[str]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _fixed_names(branch)
    elif isinstance(kind, dict):
        if kind.get("type") == "fixed":
            yield kind["name"]
        for part in (*kind.get("fields", ()), kind.get("items"), kind.get("values"), kind.get("type")):
            yield from _fixed_names(part)


_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_CODEC_PROPERTIES: Final = ("write.manifest.compression-codec", "write.avro.compression-codec")
_OF_PROPERTY: Final = {"uncompressed": "null", "gzip": "deflate", "snappy": "snappy", "zstd": "zstandard"}


@dataclass(frozen=True, slots=True)
class _Ways:
    """The schemas to decode a block's records with, as arrays of records.

    `items` is the schema as it stands. `lengthened` has a length before each value of the types in `sizes`, None if
    there are no such types. `record` is the schema of one record.
    """

    items: Schema
    lengthened: Schema | None
    record: Schema
    sizes: Mapping[str, int]


# The manifests of a table share one or two schemas. Parsing a schema takes longer than reading a small manifest.
@lru_cache(maxsize=64)
def _ways(schema: bytes, by_id: frozenset[tuple[int, str]], by_name: frozenset[tuple[str, str]]) -> _Ways | None:
    """The schemas to decode with; None if `schema` is no record."""
    ways = _renamed(schema, by_id, by_name)
    if ways is None:
        return None
    sizes = sizes_of(json.loads(schema))
    lengthened = array_of(with_lengths(ways, sizes.keys())) if sizes else None
    return _Ways(array_of(ways), lengthened, ways, sizes)


def _in_one_way(container: StoredContainer, ways: _Ways) -> list[Record]:
    """The records in the one encoding that fits. Raises CorruptMetadata unless exactly one does."""
    assert ways.lengthened is not None
    fitting: list[list[Record]] = []
    for items in (ways.items, ways.lengthened):
        # The wrong encoding reads bytes at wrong offsets, which may fail in any way.
        with suppress(CorruptMetadata), well_formed(container.subject):
            records = list(container.records(items))
            if all(fits(ways.record, each, ways.sizes) for each in records):
                fitting.append(records)
    if len(fitting) == 2 and fitting[0] == fitting[1]:
        return fitting[0]
    if len(fitting) != 1:
        expected = f"values of type {', '.join(ways.sizes)}, with a length before each or without"
        raise CorruptMetadata(container.subject, expected, "what reads both ways" if fitting else "neither")
    return fitting[0]


def _renamed(schema: bytes, by_id: frozenset[tuple[int, str]], by_name: frozenset[tuple[str, str]]) -> Schema | None:
    parsed = json.loads(schema)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        return None
    return renamed(parsed, Names(dict(by_id), dict(by_name)))
