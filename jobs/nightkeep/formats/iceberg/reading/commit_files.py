"""A snapshot's JSON -> the manifests that it lists, and the entries of those that its commit wrote or dropped.

A commit keeps most manifests of its parent. The others are all that it changed, and all that is read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, Manifest, Status
from nightkeep.formats.iceberg.metadata.features import manifest_list_of
from nightkeep.formats.iceberg.metadata.manifest_list import embedded_manifests, read_manifest_list
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer
from nightkeep.storage import Storage

Listed = Mapping[str, Manifest]
"""The manifests of a snapshot by path."""


def listed_manifests(storage: Storage, raw: Raw, *, table: str) -> Listed:
    """Raises MissingFile, CorruptMetadata, RefusedTable."""
    if "manifest-list" not in raw and "manifests" in raw:
        found: Sequence[Manifest] = embedded_manifests(storage, raw, subject=table)
    else:
        found = read_manifest_list(storage, manifest_list_of(table, raw))
    return {manifest.path: manifest for manifest in found}


@dataclass(frozen=True)
class CommittedEntries:
    """`written` are the manifests that the parent does not have, each with its entries. `dropped` are live entries of
    manifests that only the parent has, None if the parent has expired. `kept` pairs the lines of the others."""

    written: tuple[tuple[Manifest, tuple[Entry, ...]], ...]
    dropped: tuple[Entry, ...] | None
    kept: tuple[tuple[Manifest, Manifest], ...] = ()

    @cached_property
    def added(self) -> tuple[ContentFile, ...]:
        return self._of(Status.ADDED)

    @cached_property
    def removed(self) -> tuple[ContentFile, ...]:
        return self._of(Status.DELETED)

    @cached_property
    def existing(self) -> tuple[ContentFile, ...]:
        return self._of(Status.EXISTING)

    @cached_property
    def before(self) -> Mapping[Identity, ContentFile] | None:
        """The files of the parent that the dropped manifests list."""
        return None if self.dropped is None else {entry.file.identity: entry.file for entry in self.dropped}

    def _of(self, status: Status) -> tuple[ContentFile, ...]:
        return tuple(entry.file for _, entries in self.written for entry in entries if entry.status is status)


def committed_entries(
    storage: Storage, schema: IcebergSchema, *, own: Listed, parent: Listed | None, version: int
) -> CommittedEntries:
    """What the commit of the snapshot `version` changed. Raises as `listed_manifests`."""
    if parent is None:
        written = [manifest for manifest in own.values() if manifest.snapshot_id == version]
        return CommittedEntries(_read(storage, schema, written), None)
    gone = _read(storage, schema, [manifest for path, manifest in parent.items() if path not in own])
    return CommittedEntries(
        _read(storage, schema, [manifest for path, manifest in own.items() if path not in parent]),
        tuple(entry for _, entries in gone for entry in entries if entry.status is not Status.DELETED),
        tuple((parent[path], manifest) for path, manifest in own.items() if path in parent),
    )


def _read(
    storage: Storage, schema: IcebergSchema, manifests: Sequence[Manifest]
) -> tuple[tuple[Manifest, tuple[Entry, ...]], ...]:
    return tuple((manifest, tuple(read_manifest(storage, manifest, schema))) for manifest in manifests)


def live_twice(storage: Storage, schema: IcebergSchema, own: Listed) -> Iterator[tuple[str, Sequence[int]]]:
    """The files that are live more than once in a snapshot, each with the snapshots that added it. Reads all manifests.

    Raises as `listed_manifests`."""
    added: dict[Identity, list[int]] = {}
    for manifest in own.values():
        for entry in read_manifest(storage, manifest, schema):
            if entry.status is not Status.DELETED:
                added.setdefault(entry.file.identity, []).append(entry.snapshot_id)
    yield from ((name[0], versions) for name, versions in added.items() if len(versions) > 1)


def schema_of(metadata: Raw, raw: Raw, *, table: str) -> IcebergSchema:
    """The schema that a snapshot was written with, the table's current one for a snapshot that does not state it."""
    known = raw.get("schema-id") is not None
    return parse(metadata, table=table, schema_id=integer(raw, "schema-id", subject=table) if known else None)
