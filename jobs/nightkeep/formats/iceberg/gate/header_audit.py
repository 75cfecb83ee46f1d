"""Headers of the Avro files that a snapshot adds -> faults. Our own readers go by table metadata alone.

Other readers take the partition spec, the version of the format and the names of fields from a manifest's header (those
of Java, Go and Rust). Retention identifies the owner of a list by its header. Spec, "Manifests".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from nightkeep.formats.iceberg.metadata.avro import read_header
from nightkeep.formats.iceberg.metadata.content_files import Manifest, ManifestContent
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_schema, list_schema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.storage import Storage


def manifest_header_faults(data: bytes, manifest: Manifest, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults of a manifest's header: its schema and spec must be those of the table."""
    schema, found = candidate.schema, read_header(data, subject=manifest.path)
    fields = [field.model_dump(mode="json", by_alias=True) for field in schema.spec(manifest.spec_id).fields]
    expected = {
        "schema": json.loads(schema.current.model_dump_json()),
        "schema-id": schema.current.schema_id,
        "partition-spec": fields,
        "partition-spec-id": manifest.spec_id,
        "format-version": schema.format_version,
    }
    if schema.format_version > 1:
        expected["content"] = "data" if manifest.content is ManifestContent.DATA else "deletes"
    yield from _differences(found.metadata, expected)
    if found.schema != entry_schema(schema, manifest.spec_id):
        yield "its header has another Avro schema than entries of its spec"


def list_header_faults(storage: Storage, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults of the header of the snapshot's manifest list."""
    location = str(candidate.raw.get("manifest-list"))
    name = name_in(storage, location)
    found, version = read_header(storage.read(name), subject=location), candidate.schema.format_version
    expected: dict[str, object] = {
        "snapshot-id": candidate.version,
        "parent-snapshot-id": candidate.parent_version,
        "format-version": version,
    }
    if version > 1:
        expected["sequence-number"] = candidate.sequence_number
    if candidate.schema.has_row_lineage:
        expected["first-row-id"] = candidate.raw.get("first-row-id")
    yield from (f"{name}: {fault}" for fault in _differences(found.metadata, expected))
    if found.schema != list_schema(version):
        yield f"{name}: its header has another Avro schema than lists of version {version}"


def _differences(metadata: Mapping[str, bytes], expected: Mapping[str, object]) -> Iterator[str]:
    for name, value in expected.items():
        text = metadata.get(name, b"").decode(errors="replace")
        if _parsed(text) != value:
            yield f"its header states {name} {text or 'nothing'}, expected {value}"


def _parsed(text: str) -> object:
    """JSON, or the text itself: `content` is plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
