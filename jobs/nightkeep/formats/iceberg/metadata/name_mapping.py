"""Fields of a data file -> the same fields with ids: the file's own, or those of the table's name mapping.

Spec, "Column Projection", "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.table.name_mapping import MappedField, parse_mapping_from_json

from nightkeep.encodings.nested_values import map_of
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.model.arrow_types import FIELD_ID, ArrowField, field_id

PROPERTY: Final = "schema.name-mapping.default"


def with_ids(fields: Sequence[ArrowField], schema: IcebergSchema, *, subject: str) -> list[ArrowField]:
    """The fields with their ids. The mapping is not used if any field has an id, as in Java (ParquetSchemaUtil.hasIds).

    Raises RefusedTable if neither the file nor a mapping gives ids. Java then matches columns by position, which is a
    guess.
    """
    if any(map(_has_id, fields)):
        return list(fields)
    text = schema.properties.get(PROPERTY)
    if text is None:
        advice = f"set {PROPERTY}, or rewrite these files with the engine that added them"
        raise RefusedTable(subject, "a data file has no field ids and the table no name mapping", advice)
    try:
        mapping = parse_mapping_from_json(text)
    except ValueError as failure:
        raise CorruptMetadata(f"{schema.table}: {PROPERTY}", "a name mapping", reason_of(failure)) from failure
    by_name = _by_name(mapping.root)
    return [_mapped(field, field.name, by_name) for field in fields]


def _has_id(field: ArrowField) -> bool:
    return field_id(field) is not None or any(map(_has_id, _children(field.type)))


def _children(kind: pa.DataType) -> list[ArrowField]:
    return [kind.field(place) for place in range(kind.num_fields)]


def _by_name(fields: Iterable[MappedField]) -> dict[str, MappedField]:
    return {name: field for field in fields for name in field.names}


def _mapped(field: ArrowField, name: str, known: Mapping[str, MappedField]) -> ArrowField:
    """The field with its mapped id. Without one it gets no id, and readers ignore its values."""
    mapped = known.get(name)
    below = _by_name(mapped.fields) if mapped else {}
    plain = pa.field(field.name, _type(field.type, below), field.nullable)
    if mapped is None or mapped.field_id is None:
        return plain
    return plain.with_metadata({FIELD_ID: str(mapped.field_id).encode()})


def _type(kind: pa.DataType, known: Mapping[str, MappedField]) -> pa.DataType:
    """The type with mapped ids. Mappings call list and map fields element, key and value (ApplyNameMapping.java)."""
    if isinstance(kind, pa.StructType):
        return pa.struct([_mapped(child, child.name, known) for child in kind])
    if isinstance(kind, pa.MapType):
        return map_of(_mapped(kind.key_field, "key", known), _mapped(kind.item_field, "value", known))
    if isinstance(kind, pa.ListType):
        return pa.list_(_mapped(kind.value_field, "element", known))
    return kind
