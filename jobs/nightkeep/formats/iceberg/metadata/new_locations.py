"""A new file's name -> its location: where the table's own properties put data, deletes and metadata.

pyiceberg's layouts, which are Java's (LocationProviders.java). A provider class that the table names is not loaded:
metadata does not choose the code we run, and a file may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote_plus
from uuid import UUID

from pyiceberg.table.locations import LocationProvider, ObjectStoreLocationProvider, SimpleLocationProvider
from pyiceberg.types import UUIDType

from nightkeep.formats.iceberg.metadata.manifest_schema import partition_types
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema

_OBJECT_STORAGE: Final = "write.object-storage.enabled"
_PARTITIONED_PATHS: Final = "write.object-storage.partitioned-paths"


def data_location(schema: IcebergSchema, spec_id: int, values: Sequence[object], file_name: str) -> str:
    """Where a data or delete file of this partition goes; `values` as manifests hold them. Nothing is created.

    Raises CorruptMetadata for a spec that the table does not have.
    """
    partition = _partition_path(schema, spec_id, values)
    if _object_storage(schema) and not _is(schema, _PARTITIONED_PATHS, "true"):
        partition = ""
    return _provider(schema).new_data_location(f"{partition}/{file_name}" if partition else file_name)


def metadata_location(schema: IcebergSchema, file_name: str) -> str:
    """Where a manifest, manifest list or table metadata file goes."""
    return _provider(schema).new_metadata_location(file_name)


def _partition_path(schema: IcebergSchema, spec_id: int, values: Sequence[object]) -> str:
    """`day=2026-11-01/name=a%2Fb`, names and values escaped as Java's URLEncoder does; empty without fields."""
    parts = []
    fields = zip(schema.spec(spec_id).fields, partition_types(schema, spec_id), values, strict=True)
    for field, kind, value in fields:
        shown = UUID(bytes=value) if isinstance(kind, UUIDType) and isinstance(value, bytes) else value
        text = field.transform.to_human_string(kind, shown)
        parts.append(f"{escaped(field.name)}={escaped(text)}")
    return "/".join(parts)


def escaped(text: str) -> str:
    """A name or a value as it is in a path: as Java's URLEncoder writes it."""
    # What URLEncoder leaves as it is besides letters, digits and -_. is the star; Python leaves the tilde.
    return quote_plus(text, safe="*").replace("~", "%7E")


def _object_storage(schema: IcebergSchema) -> bool:
    return _is(schema, _OBJECT_STORAGE, "false")


def _is(schema: IcebergSchema, key: str, default: str) -> bool:
    return schema.properties.get(key, default).lower() == "true"


def _provider(schema: IcebergSchema) -> LocationProvider:
    layout = ObjectStoreLocationProvider if _object_storage(schema) else SimpleLocationProvider
    return layout(schema.location.rstrip("/"), dict(schema.properties))
