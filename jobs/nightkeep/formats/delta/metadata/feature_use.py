"""Metadata and domains of a version -> whether a feature that its protocol lists is used.

A protocol may list a feature that nothing in the table uses: delta-rs lists variantType with every deletion vector, and
a property that was unset leaves its feature behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from nightkeep.formats.delta.metadata.actions import Raw, parse_object

Domains = Mapping[str, Raw]
NO_DOMAINS: Final[Domains] = MappingProxyType({})
Use = Callable[[Raw, Domains], bool]
"""metaData and domains of a version -> whether the feature is used."""

CLUSTERING: Final = "delta.clustering"


def always(metadata: Raw, domains: Domains) -> bool:
    """For features that leave no trace in the metadata."""
    return True


def has_types(*starts: str) -> Use:
    """Whether a column, or a field within one, has a type whose name starts so."""

    def used(metadata: Raw, domains: Domains) -> bool:
        return any(kind.lower().startswith(starts) for kind in _type_names(_schema(metadata)))

    return used


def has_collations(metadata: Raw, domains: Domains) -> bool:
    """Whether a column or a field has a collation."""
    return bool(collated_columns(metadata))


def collated_columns(metadata: Raw) -> tuple[str, ...]:
    """Names of the columns with a collation, in them or in a field of theirs: their order is not that of bytes."""
    columns = _schema(metadata).get("fields")
    whole = [column for column in columns if isinstance(column, dict)] if isinstance(columns, list) else []
    return tuple(str(column.get("name")) for column in whole if any(map(_is_collated, _objects(column))))


def _is_collated(field: Raw) -> bool:
    return bool(field.get("__COLLATIONS"))


def is_enabled(name: str) -> Use:
    """Whether a property is true."""
    return lambda metadata, domains: _property(metadata, name).lower() == "true"


def is_set(name: str) -> Use:
    """Whether a property has a value."""
    return lambda metadata, domains: _property(metadata, name) != ""


def _property(metadata: Raw, name: str) -> str:
    properties = metadata.get("configuration")
    value = properties.get(name) if isinstance(properties, Mapping) else None
    return "" if value is None else str(value)


def _schema(metadata: Raw) -> Raw:
    return parse_object(str(metadata.get("schemaString") or "{}"), subject="schemaString")


def _objects(schema: Raw) -> Iterator[Raw]:
    """The object and all objects within it, at any depth."""
    pending: list[object] = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _type_names(schema: Raw) -> Iterator[str]:
    for each in _objects(schema):
        yield from (kind for key in _TYPE_KEYS if isinstance(kind := each.get(key), str))


_TYPE_KEYS: Final = ("type", "elementType", "keyType", "valueType")
