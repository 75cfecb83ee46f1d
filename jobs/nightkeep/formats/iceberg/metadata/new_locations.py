"""Name of a new file -> its location, by the table's properties for data, deletes and metadata.

The layouts are those of pyiceberg and Java (LocationProviders.java). A location provider class that the table names is
not loaded: metadata must not choose the code that runs. The spec allows any location for a file.
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
    """The location of a new data or delete file of this partition. `values` have the form of manifests.

    Raises CorruptMetadata for a spec that the table does not have.
    """
    partition = _partition_path(schema, spec_id, values)
    if _object_storage(schema) and not _is(schema, _PARTITIONED_PATHS, "true"):
        partition = ""
    return _provider(schema).new_data_location(f"{partition}/{file_name}" if partition else file_name)


def metadata_location(schema: IcebergSchema, file_name: str) -> str:
    """The location of a new manifest, manifest list or table metadata file."""
    return _provider(schema).new_metadata_location(file_name)


def _partition_path(schema: IcebergSchema, spec_id: int, values: Sequence[object]) -> str:
    """The folder of a partition: `day=2026-11-01/name=a%2Fb`, escaped as by Java's URLEncoder; empty without fields."""
    parts = []
    fields = zip(schema.spec(spec_id).fields, partition_types(schema, spec_id), values, strict=True)
    for field, kind, value in fields:
        shown = UUID(bytes=value) if isinstance(kind, UUIDType) and isinstance(value, bytes) else value
        text = field.transform.to_human_string(kind, shown)
        parts.append(f"{escaped(field.name)}={escaped(text)}")
    return "/".join(parts)


def escaped(text: str) -> str:
    """A name or a value escaped for a path as by Java's URLEncoder."""
    # Besides letters, digits and -_. URLEncoder keeps the star; Python keeps the tilde instead.
    return quote_plus(text, safe="*").replace("~", "%7E")


def _object_storage(schema: IcebergSchema) -> bool:
    return _is(schema, _OBJECT_STORAGE, "false")


def _is(schema: IcebergSchema, key: str, default: str) -> bool:
    return schema.properties.get(key, default).lower() == "true"


def _provider(schema: IcebergSchema) -> LocationProvider:
    layout = ObjectStoreLocationProvider if _object_storage(schema) else SimpleLocationProvider
    return layout(schema.location.rstrip("/"), dict(schema.properties))
