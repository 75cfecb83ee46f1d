"""Avro container bytes <-> records by the spec's field names: fields are found by id, whatever a writer called them.

A schema has its fields renamed by their `field-id` before anything is decoded or encoded, as names are no part of the
bytes. No logical type is applied: values are what Avro stores, decimals and UUIDs bytes, times and dates numbers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import polars as pl

from nightkeep.encodings.avro_codecs import CODECS, Codec
from nightkeep.encodings.avro_container import (
    AvroHeader,
    Record,
    Schema,
    StoredContainer,
    array_of,
    container_bytes,
    open_container,
    well_formed,
)
from nightkeep.errors import CorruptMetadata, UsageError, kind_of
from nightkeep.formats.iceberg.metadata.avro_fixed import fits, sizes_of, with_lengths


@dataclass(frozen=True, slots=True)
class Names:
    """What the fields of a container are called here: by field id, and by a writer's name where it gives no id."""

    by_id: Mapping[int, str]
    by_name: Mapping[str, str]


def read_records(data: bytes, names: Names, *, subject: str) -> Iterator[Record]:
    """Every record of an object container file in order, decoded a block at a time: all of them at once where a type
    could be written in two ways, of which one must fit.

    Raises CorruptMetadata naming `subject` where the bytes are no such file; a file that is cut exactly between two
    blocks cannot be told from a shorter one.
    """
    with well_formed(subject):
        container = open_container(data, CODECS, subject=subject)
        ways = _ways(container.schema, frozenset(names.by_id.items()), frozenset(names.by_name.items()))
        if ways is None:
            raise CorruptMetadata(subject, "a record schema", "another one")
        yield from container.records(ways.items) if ways.lengthened is None else _in_one_way(container, ways)


def read_metadata(data: bytes, *, subject: str) -> Mapping[str, bytes]:
    """What the header of a container says beside schema and codec. Raises CorruptMetadata as `read_records`."""
    with well_formed(subject):
        return open_container(data, CODECS, subject=subject).metadata


def read_frame(data: bytes, names: Names, *, subject: str) -> pl.DataFrame | None:
    """The same records as columns, by Polars' own reader; None for what it cannot read, which says nothing of the file.

    Raises CorruptMetadata as `read_records`, but for the content of blocks.
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
    """How records are written: the schema that the header shows, the names records have, the rest of the header."""

    schema: Schema
    names: Names
    codec: Codec
    metadata: Mapping[str, str]


def write_records(records: Iterable[Record], layout: AvroLayout) -> bytes:
    """A whole container file; records are taken and encoded a block at a time. Equal arguments give equal bytes.

    Raises ValueError or TypeError for a record that the schema does not hold.
    """
    items = array_of(renamed(layout.schema, layout.names))
    metadata = {key: value.encode() for key, value in layout.metadata.items()}
    return container_bytes(records, items, layout.codec, AvroHeader(layout.schema, metadata))


def codec_of(properties: Mapping[str, str]) -> Codec:
    """The codec that a table asks for its manifests to be written with; gzip, which is deflate, where it does not.

    Java's manifests follow the first of these properties, pyiceberg's the other. Raises UsageError for a codec that
    Iceberg does not name.
    """
    for key in ("write.manifest.compression-codec", "write.avro.compression-codec"):
        value = properties.get(key)
        if value is not None:
            name = _OF_PROPERTY.get(value.lower())
            if name is None:
                raise UsageError(f"table property {key}: expected one of {', '.join(_OF_PROPERTY)}, found {value}")
            return CODECS[name]
    return CODECS["deflate"]


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
                raise ValueError(f"a type that is written out, found {kind_of(kind)}")
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
            raise ValueError(f"items that take bytes, found {kind_of(kind)}")
        return {"type": "array", "items": items}

    def _record(self, kind: Schema) -> Schema:
        fields = [{"name": self._name(field), "type": self.of(field["type"])} for field in kind["fields"]]
        if len({field["name"] for field in fields}) != len(fields):
            raise ValueError(f"each field once, found {kind_of(kind)}")
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

_OF_PROPERTY: Final = {"uncompressed": "null", "gzip": "deflate", "snappy": "snappy", "zstd": "zstandard"}


@dataclass(frozen=True, slots=True)
class _Ways:
    """What a block's records are decoded by: `items`, or `lengthened` where `sizes` has types of two ways, of which
    records are then to fit `record`."""

    items: Schema
    lengthened: Schema | None
    record: Schema
    sizes: Mapping[str, int]


# The manifests of a table have a schema or two, and reading one takes longer than a small manifest.
@lru_cache(maxsize=64)
def _ways(schema: bytes, by_id: frozenset[tuple[int, str]], by_name: frozenset[tuple[str, str]]) -> _Ways | None:
    """None for a schema of no records."""
    ways = _renamed(schema, by_id, by_name)
    if ways is None:
        return None
    sizes = sizes_of(json.loads(schema))
    lengthened = array_of(with_lengths(ways, sizes.keys())) if sizes else None
    return _Ways(array_of(ways), lengthened, ways, sizes)


def _in_one_way(container: StoredContainer, ways: _Ways) -> list[Record]:
    """Raises CorruptMetadata unless exactly one of both ways fits."""
    assert ways.lengthened is not None
    fitting: list[list[Record]] = []
    for items in (ways.items, ways.lengthened):
        # The other way reads numbers from the middle of others.
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
