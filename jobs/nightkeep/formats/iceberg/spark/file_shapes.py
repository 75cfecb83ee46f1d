"""Data files -> facts of their footers that Spark's reader needs: names if there are no ids, and missing fields.

Footers are read only for tables with a name mapping or with initial defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.name_mapping import PROPERTY, with_ids
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.spark.avro_files import PARQUET, stored_fields
from nightkeep.formats.iceberg.spark.schema import Names
from nightkeep.model.arrow_types import ArrowField, field_id
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class FileShape:
    """`names`: None for a file with field ids. `lacks`: ids of fields with a default that the file does not have."""

    names: Names | None
    lacks: frozenset[int]


def shapes(
    storage: Storage, schema: IcebergSchema, files: Sequence[ContentFile], defaults: Mapping[int, object]
) -> list[FileShape]:
    """The shape of each file. `defaults` are initial defaults by field id."""
    if PROPERTY not in schema.properties and not defaults:
        return [FileShape(None, frozenset())] * len(files)
    return [_shape(storage, schema, file, defaults) for file in files]


def defaults_of(fields: Sequence[NestedField]) -> Mapping[int, object]:
    """Initial defaults of fields and of their nested fields, by field id, without nulls."""
    return {each.field_id: each.initial_default for each in _every(fields) if each.initial_default is not None}


def _every(fields: Sequence[NestedField]) -> Iterator[NestedField]:
    for field in fields:
        yield field
        yield from _every(_children(field.field_type))


def _children(kind: IcebergType) -> Sequence[NestedField]:
    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return (kind.element_field,)
        case MapType():
            return (kind.key_field, kind.value_field)
        case _:
            return ()


def _shape(storage: Storage, schema: IcebergSchema, file: ContentFile, defaults: Mapping[int, object]) -> FileShape:
    held = _parquet_fields(storage, file) if file.format == PARQUET else stored_fields(storage, file)
    has_ids = any(number is not None for number, _ in _ids(held))
    mapped = held if has_ids else with_ids(held, schema, subject=file.path)
    names = {number: name for number, name in _ids(mapped) if number is not None}
    return FileShape(None if has_ids else names, frozenset(defaults.keys() - names.keys()))


def _parquet_fields(storage: Storage, file: ContentFile) -> list[ArrowField]:
    try:
        with storage.open(file.name) as source:
            return list(pq.read_schema(source))
    except (pa.ArrowException, OSError) as failure:
        raise CorruptMetadata(file.path, "a Parquet file", reason_of(failure)) from failure


def _ids(fields: Sequence[ArrowField]) -> Iterator[tuple[int | None, str]]:
    for field in fields:
        yield field_id(field), field.name
        yield from _ids([field.type.field(place) for place in range(field.type.num_fields)])
