"""Content files by hand, in few words, and schemas to put them in."""

from collections.abc import Mapping, Sequence
from typing import Any

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse

Fields = Sequence[tuple[str, Any]]


def schema_of(columns: Fields, *specs: Fields, version: int = 3, **more: Any) -> IcebergSchema:
    """Columns (name, type) with ids from 1; each spec is of (column, transform), its fields called as the column."""
    return parse(metadata_of(columns, *specs, version=version, **more), table="db.t")


def metadata_of(columns: Fields, *specs: Fields, version: int = 3, **more: Any) -> dict[str, Any]:
    """Table metadata without a snapshot."""
    ids = {name: number for number, (name, _) in enumerate(columns, 1)}
    fields = [{"id": ids[name], "name": name, "required": False, "type": kind} for name, kind in columns]
    return {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:///lake/t",
        "last-updated-ms": 1_000,
        "last-sequence-number": 0,
        "next-row-id": 0,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [_spec(number, spec, ids) for number, spec in enumerate(specs or ((),))],
        **more,
    }


def _spec(number: int, fields: Fields, ids: Mapping[str, int]) -> dict[str, Any]:
    return {
        "spec-id": number,
        "fields": [
            {"name": name, "transform": transform, "source-id": ids[name], "field-id": 1000 + 10 * number + place}
            for place, (name, transform) in enumerate(fields)
        ],
    }


def file_of(path: str, sequence: int = 1, *, content: FileContent = FileContent.DATA, **more: Any) -> ContentFile:
    given: dict[str, Any] = {
        "format": "parquet",
        "spec_id": 0,
        "partition": (),
        "rows": 1,
        "bytes": 1,
        "file_sequence_number": sequence,
        "snapshot_id": 1,
        **more,
    }
    return ContentFile(content, f"/{path}", path, sequence_number=sequence, **given)


def positions_of(path: str, sequence: int, referenced: str | None = None, **more: Any) -> ContentFile:
    target = None if referenced is None else f"/{referenced}"
    return file_of(path, sequence, content=FileContent.POSITION_DELETES, referenced=target, **more)


def vector_of(path: str, sequence: int, referenced: str, offset: int = 4, **more: Any) -> ContentFile:
    place = {"format": "puffin", "content_offset": offset, "content_bytes": 10}
    return positions_of(path, sequence, referenced, **place, **more)


def equality_of(path: str, sequence: int, *ids: int, **more: Any) -> ContentFile:
    return file_of(path, sequence, content=FileContent.EQUALITY_DELETES, equality_ids=ids or (1,), **more)
