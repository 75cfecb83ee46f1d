"""Table metadata of format version 1 -> the same with the fields that later versions require, and those that it lacks.

Iceberg table spec, "Table Metadata Fields"; TableMetadataParser.java, PartitionSpecParser.java. Metadata of the first
releases has one schema and one partition spec, no ids of partition fields, and no UUID.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, objects
from nightkeep.model.json_values import JsonValue


def completed(raw: Raw, *, subject: str) -> Raw:
    """The metadata with schemas, partition specs and a UUID, and under LACKING the names of those that it did not have.
    Other versions are returned as they are. Raises CorruptMetadata."""
    if raw.get("format-version") != 1:
        return raw
    lacking: JsonValue = [name for name in _WHOLE if raw.get(name) is None]
    whole: dict[str, JsonValue] = {
        LACKING: lacking,
        "table-uuid": "",
        **{name: each for name, each in raw.items() if each is not None},
    }
    if "schemas" not in whole:
        schema = _object(raw, "schema", subject)
        whole["schemas"] = [{"schema-id": 0, **schema}]
        whole["current-schema-id"] = schema.get("schema-id", 0)
    if "partition-specs" not in whole:
        fields = objects(raw, "partition-spec", subject=subject)
        whole["partition-specs"] = [{"spec-id": 0, "fields": [dict(field) for field in fields]}]
        whole["default-spec-id"] = 0
    whole["partition-specs"] = [_numbered(spec, subject) for spec in objects(whole, "partition-specs", subject=subject)]
    return whole


def _object(raw: Raw, name: str, subject: str) -> Mapping[str, JsonValue]:
    value = raw.get(name)
    if not isinstance(value, dict):
        raise CorruptMetadata(f"{subject}: {name}", "an object", kind_of(value))
    return value


def _numbered(spec: Raw, subject: str) -> JsonValue:
    """The spec with ids of its fields. Without them they count on, as in Java."""
    fields = objects(spec, "fields", subject=subject)
    return {**spec, "fields": [{"field-id": _FIRST_FIELD + place, **field} for place, field in enumerate(fields)]}


def lacking(raw: Raw) -> list[str]:
    """What metadata of format version 1 does not have, as completed or as stored: no commit may be made from it."""
    known = raw.get(LACKING)
    return [str(each) for each in known] if isinstance(known, list) else [name for name in _WHOLE if not raw.get(name)]


LACKING: Final = "nightkeep\0lacking"
"""A key of completed metadata. No writer's key has a control character."""
_WHOLE: Final = ("table-uuid", "schemas", "partition-specs")
_FIRST_FIELD: Final = 1000
"""PartitionSpec.java, PARTITION_DATA_ID_START."""
