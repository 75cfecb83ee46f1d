"""Our manifests and entries as the Java driver shows Iceberg's own: the specification's names, bounds in hex."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyiceberg.types import DateType, IcebergType, TimestampType, TimestamptzType, TimeType, UUIDType

from nightkeep.formats.iceberg.metadata.content_files import Entry, FileContent, Manifest
from nightkeep.formats.iceberg.metadata.manifest_schema import partition_types
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema


def manifest_shown(manifest: Manifest) -> dict[str, Any]:
    return {
        "manifest_path": manifest.path,
        "manifest_length": manifest.bytes,
        "partition_spec_id": manifest.spec_id,
        "content": int(manifest.content),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.snapshot_id,
        "added_files_count": manifest.added_files,
        "existing_files_count": manifest.existing_files,
        "deleted_files_count": manifest.deleted_files,
        "added_rows_count": manifest.added_rows,
        "existing_rows_count": manifest.existing_rows,
        "deleted_rows_count": manifest.deleted_rows,
        "first_row_id": manifest.first_row_id,
        "partitions": [{key: _hex(value) for key, value in each.items()} for each in manifest.partitions or ()],
    }


def entry_shown(manifest: Manifest, entry: Entry, schema: IcebergSchema) -> dict[str, Any]:
    file = entry.file
    types = partition_types(schema, file.spec_id)
    deletes = file.content is not FileContent.DATA
    return {
        "manifest_path": manifest.path,
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": file.sequence_number,
        "file_sequence_number": file.file_sequence_number if file.is_dated else None,
        "content": int(file.content),
        "file_path": file.path,
        "file_format": file.raw["file_format"],
        "spec_id": file.spec_id,
        "record_count": file.rows,
        "file_size_in_bytes": file.bytes,
        "sort_order_id": file.sort_order_id,
        "partition": [_partition(kind, value) for kind, value in zip(types, file.partition, strict=True)],
        **{name: _map(file.raw.get(name)) for name in _MAPS},
        "key_metadata": _hex(file.raw.get("key_metadata")),
        "split_offsets": file.raw.get("split_offsets"),
        "equality_ids": list(file.equality_ids) or None,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.raw.get("referenced_data_file") if deletes else None,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_bytes,
    }


_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_EPOCH = datetime(1970, 1, 1)


def _hex(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _map(value: Any) -> Any:
    return {str(key): _hex(value[key]) for key in sorted(value)} if isinstance(value, Mapping) else value


def _partition(kind: IcebergType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, DateType):
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if isinstance(kind, TimeType | TimestampType | TimestamptzType):
        text = (_EPOCH + timedelta(microseconds=value)).isoformat(timespec="microseconds")
        return text.removeprefix("1970-01-01T") if isinstance(kind, TimeType) else text + _zone(kind)
    if isinstance(kind, UUIDType):
        return str(UUID(bytes=value))
    if isinstance(value, float) and (value != value or str(value) == "-0.0"):
        return "NaN" if value != value else "-0.0"
    return f"{value:f}" if isinstance(value, Decimal) else _hex(value)


def _zone(kind: IcebergType) -> str:
    return "Z" if isinstance(kind, TimestamptzType) else ""
