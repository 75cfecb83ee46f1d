"""Avro schema with types `fixed` -> the schema of Iceberg Java's encoding, and a check which of the two fits.

Avro stores a fixed value without a length. Iceberg Java writes a length before each, under the same schema
(ValueWriters.FixedByteBufferWriter).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from nightkeep.encodings.avro_schemas import AvroType


def sizes_of(schema: AvroType) -> Mapping[str, int]:
    """The sizes in bytes of the types `fixed`, by type name. Types with a logical type have one encoding only."""
    return dict(_plain(schema))


def with_lengths(schema: AvroType, names: Collection[str]) -> AvroType:
    """The schema that decodes Java's encoding: the types `names` are bytes."""
    if isinstance(schema, list):
        return [with_lengths(each, names) for each in schema]
    if isinstance(schema, str):
        return "bytes" if schema in names else schema
    if schema.get("type") == "fixed":
        return "bytes" if schema["name"] in names else schema
    return {key: with_lengths(value, names) if key in _WITHIN else value for key, value in schema.items()}


def fits(schema: AvroType, value: object, sizes: Mapping[str, int]) -> bool:
    """Whether every value of the types in `sizes` has the size of its type. Values were decoded as bytes."""
    if isinstance(schema, list):
        return value is None or all(fits(each, value, sizes) for each in schema if each != "null")
    if isinstance(schema, dict) and schema["type"] == "record" and isinstance(value, dict):
        return all(fits(field["type"], value[field["name"]], sizes) for field in schema["fields"])
    name = schema["name"] if isinstance(schema, dict) and schema["type"] == "fixed" else schema
    if not isinstance(name, str) or name not in sizes:
        return True
    return isinstance(value, bytes) and len(value) == sizes[name]


_WITHIN: Final = frozenset({"type", "fields", "items", "values"})


def _plain(schema: AvroType) -> Iterator[tuple[str, int]]:
    if isinstance(schema, list):
        for each in schema:
            yield from _plain(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "fixed":
            if "logicalType" not in schema:
                yield schema["name"], schema["size"]
        else:
            for key in _WITHIN & schema.keys():
                yield from _plain(schema[key])
