"""Schema of an Avro file -> its shape: size, depth, and how much memory decoded bytes may take at most.

The decoder is C code: it recurses as deep as the schema, and loops over items of no bytes. So depth and size of a
schema are limited, with references expanded. Recursive types and array items of no bytes are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from nightkeep.errors import kind_of
from nightkeep.model.json_values import JsonValue

Schema: TypeAlias = dict[str, Any]
"""A type with attributes, or a field of a record, as JSON."""
AvroType: TypeAlias = "str | list[AvroType] | Schema"
"""A type by name, a union, or a type with attributes. Whoever takes one has it from a schema that was parsed."""

MAX_DEPTH: Final = 32
"""The most nested levels of types. A manifest has eight."""
MAX_TYPES: Final = 50_000
"""The most types in a schema. A manifest has a hundred, and two for each partition field."""
MAX_TEXT: Final = 4 << 20
"""The most bytes of a schema's JSON, which has about 100 bytes per type."""
PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True, slots=True)
class SchemaShape:
    """A type with all types inside it: the number of `types`, the `depth`, and the `least` bytes of an encoded value.

    `ratio` is the most bytes of CPython memory that one encoded byte may become.
    """

    types: int
    depth: int
    least: int
    ratio: int


# The manifests of a table share one or two schemas.
@lru_cache(maxsize=64)
def shape_of(text: bytes) -> SchemaShape | None:
    """The shape of a schema; None if it is no record, and no union of null and a record.

    Raises ValueError for a schema that cannot be decoded with, RecursionError for one that is too deep to parse.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"an Avro schema of {len(text)} bytes, expected at most {MAX_TEXT}")
    schema = json.loads(text)
    return None if _record_of(schema) is None else _Schema().shape(schema, 0)


@dataclass(frozen=True, slots=True)
class RootSchema:
    """The schema of a file: the whole `kind`, its `record`, and the record's `branch` if the kind is a union."""

    kind: AvroType
    record: Schema
    branch: int | None


def root_of(text: bytes) -> RootSchema:
    """The schema of a file that has a shape: a record, or a union of null and a record, as Paimon to 0.8 writes it.

    Raises ValueError for another one.
    """
    kind = json.loads(text)
    record = _record_of(kind)
    if record is None:
        raise ValueError(f"a record schema, found {kind_of(text)}")
    return RootSchema(kind, record, kind.index(record) if isinstance(kind, list) else None)


def _record_of(kind: JsonValue) -> Schema | None:
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        kind = kind[1 - kind.index("null")]
    return kind if isinstance(kind, dict) and kind.get("type") == "record" else None


class _Schema:
    """Parsing state: the shapes of complete named types, and the names of types that are still open."""

    def __init__(self) -> None:
        self._whole: dict[str, SchemaShape] = {name: _PRIMITIVE[name] for name in PRIMITIVES}
        self._open: set[str] = set()

    def shape(self, kind: JsonValue, level: int) -> SchemaShape:
        shape = self._shape(kind, level)
        if shape.depth > MAX_DEPTH or shape.types > MAX_TYPES:
            raise ValueError(f"an Avro schema of at most {MAX_DEPTH} levels and {MAX_TYPES} types, found more")
        return shape

    def _shape(self, kind: JsonValue, level: int) -> SchemaShape:
        if level > MAX_DEPTH:
            raise ValueError(f"an Avro schema of at most {MAX_DEPTH} levels, found more")
        if isinstance(kind, str):
            return self._named(kind)
        if isinstance(kind, list):
            return _around([self.shape(branch, level + 1) for branch in kind], least=1, memory=0)
        if not isinstance(kind, dict):
            raise ValueError(f"an Avro type, found {kind_of(kind)}")
        return self._object(kind, level)

    def _object(self, kind: Schema, level: int) -> SchemaShape:
        match kind.get("type"):
            case "record":
                return self._record(kind, level)
            case "array":
                return self._items(kind, self.shape(kind.get("items"), level + 1))
            case "map":
                return _around([self.shape(kind.get("values"), level + 1)], least=1, memory=_DICT + _TEXT)
            case "enum":
                return self._close(kind, _SMALL_VALUE)
            case "fixed":
                return self._close(kind, self._fixed(kind))
            case inner:
                return self.shape(inner, level + 1)

    def _named(self, name: str) -> SchemaShape:
        if name not in self._whole:
            where = "that is not within itself" if name in self._open else "that is written out before"
            raise ValueError(f"a type {where}, found {kind_of(name)}")
        return self._whole[name]

    def _items(self, kind: Schema, items: SchemaShape) -> SchemaShape:
        if items.least == 0:
            raise ValueError(f"items that take bytes, found {kind_of(kind)}")
        return _around([items], least=1, memory=_LIST)

    def _fixed(self, kind: Schema) -> SchemaShape:
        size = kind.get("size")
        if type(size) is not int or not 0 <= size < 1 << 31:
            raise ValueError(f"a fixed size, found {kind_of(size)}")
        return SchemaShape(1, 1, size, _SLOT + _TEXT)

    def _record(self, kind: Schema, level: int) -> SchemaShape:
        fields = kind.get("fields")
        if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
            raise ValueError(f"a record with fields, found one of no bytes: {kind_of(kind)}")
        names = type_names(kind)
        self._open |= names
        parts = [self.shape(field.get("type"), level + 1) for field in fields]
        least = sum(part.least for part in parts)
        return self._close(kind, _around(parts, least=least, memory=_DICT + _FIELD * len(parts)))

    def _close(self, kind: Schema, shape: SchemaShape) -> SchemaShape:
        self._whole |= dict.fromkeys(type_names(kind) - set(PRIMITIVES), shape)
        return shape


# Of CPython 3.11 on 64 bits: a pointer to a value, an empty list and dictionary, an entry of one, a small value.
_SLOT, _LIST, _DICT, _FIELD, _TEXT = 8, 64, 240, 64, 64
_SMALL_VALUE: Final = SchemaShape(1, 1, 1, _SLOT + _TEXT)
_PRIMITIVE: Final[Mapping[str, SchemaShape]] = {
    name: SchemaShape(1, 1, least, _SLOT + _TEXT)
    for name, least in zip(PRIMITIVES, (0, 1, 1, 1, 4, 8, 1, 1), strict=True)
}


def _around(parts: Iterable[SchemaShape], *, least: int, memory: int) -> SchemaShape:
    shapes = list(parts)
    own = -(-(memory + _SLOT) // max(1, least)) if memory else 1
    return SchemaShape(
        1 + sum(part.types for part in shapes),
        1 + max((part.depth for part in shapes), default=0),
        least,
        max([own, *(part.ratio for part in shapes)]),
    )


def type_names(kind: Schema) -> set[str]:
    """All names by which other types may refer to this one."""
    name, space = str(kind.get("name")), kind.get("namespace")
    return {name, name.rpartition(".")[2], *([f"{space}.{name}"] if space else [])}
