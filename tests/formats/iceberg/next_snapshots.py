"""Snapshots made by hand of manifests as our writer writes them, registered as tables of their own for Java to read."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.shown import STORAGE, snapshot_of

from nightkeep.formats.iceberg.metadata.content_files import (
    ContentFile,
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    NewFile,
    Status,
)
from nightkeep.formats.iceberg.metadata.manifest_list import WrittenManifestList, write_manifest_list
from nightkeep.formats.iceberg.metadata.manifests import read_manifest, write_manifest
from nightkeep.formats.iceberg.metadata.new_locations import metadata_location
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot

SNAPSHOT_ID = 7_000_000_000_000_000_001


@dataclass(frozen=True)
class NextSnapshot:
    """What follows the current snapshot of a table. Nothing of the table itself is changed."""

    table: Table
    parent: IcebergSnapshot

    @classmethod
    def of(cls, table: Table) -> "NextSnapshot":
        return cls(table, snapshot_of(table))

    @property
    def schema(self) -> IcebergSchema:
        return self.parent.schema

    @property
    def sequence_number(self) -> int:
        return self.parent.sequence_number + 1

    def live(self, content: FileContent | None = None) -> list[Entry]:
        entries = [e for m in self.parent.manifests for e in read_manifest(STORAGE, m, self.schema)]
        return [e for e in entries if e.status is not Status.DELETED and content in (None, e.file.content)]

    def data_files(self) -> list[ContentFile]:
        return [entry.file for entry in self.live(FileContent.DATA)]

    def manifest(self, entries: Sequence[Entry | NewFile], spec_id: int, content: ManifestContent) -> Manifest:
        return write_manifest(
            STORAGE,
            metadata_location(self.schema, f"{uuid.uuid4()}-m0.avro"),
            entries,
            schema=self.schema,
            spec_id=spec_id,
            content=content,
            snapshot_id=SNAPSHOT_ID,
            sequence_number=self.sequence_number,
        )

    def manifests(self, entries: Iterable[Entry | NewFile]) -> list[Manifest]:
        """One for each spec and kind of content."""
        groups: dict[tuple[int, ManifestContent], list[Entry | NewFile]] = {}
        for entry in entries:
            file = entry if isinstance(entry, NewFile) else entry.file
            content = ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
            groups.setdefault((file.spec_id, content), []).append(entry)
        return [self.manifest(group, *key) for key, group in groups.items()]

    def listed(self, manifests: Sequence[Manifest]) -> tuple[str, WrittenManifestList]:
        location = metadata_location(self.schema, f"snap-{uuid.uuid4()}.avro")
        written = write_manifest_list(
            STORAGE,
            location,
            manifests,
            format_version=self.schema.format_version,
            snapshot_id=SNAPSHOT_ID,
            parent_id=self.parent.version,
            sequence_number=self.sequence_number,
            next_row_id=self.parent.next_row_id,
        )
        return location, written

    def registered(self, java: IcebergJava, manifests: Sequence[Manifest], operation: str = "replace") -> Table:
        """A table of its own whose current snapshot has these manifests."""
        location, written = self.listed(manifests)
        raw = self.table.document()
        before, parent = self.parent.next_row_id, self.parent
        snapshot: dict[str, Any] = {
            "snapshot-id": SNAPSHOT_ID,
            "parent-snapshot-id": parent.version,
            "sequence-number": self.sequence_number,
            "timestamp-ms": raw["last-updated-ms"] + 1,
            "manifest-list": location,
            "summary": {"operation": operation},
            "schema-id": raw["current-schema-id"],
        }
        if before is not None and written.next_row_id is not None:
            snapshot |= {"first-row-id": before, "added-rows": written.next_row_id - before}
            raw["next-row-id"] = written.next_row_id
        raw["snapshots"].append(snapshot)
        raw |= {
            "current-snapshot-id": SNAPSHOT_ID,
            "refs": {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}},
            "last-sequence-number": self.sequence_number,
            "last-updated-ms": snapshot["timestamp-ms"],
            "snapshot-log": [{"snapshot-id": SNAPSHOT_ID, "timestamp-ms": snapshot["timestamp-ms"]}],
        }
        file = self.table.metadata.parent / f"99999-{uuid.uuid4()}.metadata.json"
        file.write_text(json.dumps(raw))
        found = self.table.warehouse.table(f"db.next_{uuid.uuid4().hex[:8]}")
        java.register(found, f"file:{file}")
        return found
