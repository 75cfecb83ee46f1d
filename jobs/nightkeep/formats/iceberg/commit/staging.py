"""Change of the live files -> manifests. A manifest that lists no removed file is kept; others are written again.

Spec, "Manifests" and "Sequence Number Inheritance". In a manifest that is written again, a file that stays is an
EXISTING entry with explicit sequence numbers. A removed file is a DELETED entry, which the next snapshot drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.commit.commit_changes import FileChange
from nightkeep.formats.iceberg.metadata.content_files import (
    ContentFile,
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    NewFile,
    Status,
)
from nightkeep.formats.iceberg.metadata.manifest_merge import Group, clustered, target_bytes, to_merge
from nightkeep.formats.iceberg.metadata.manifests import read_manifest, write_manifest
from nightkeep.formats.iceberg.metadata.naming import manifest_name
from nightkeep.formats.iceberg.metadata.new_locations import metadata_location
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Run
from nightkeep.storage import Storage

_ENTRY_BYTES = 1_000
"""Assumed bytes of a manifest entry if the table has none yet: about that of twelve columns with bounds."""


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """The snapshot that is being staged: its parent, its run, its id and sequence number."""

    storage: Storage
    parent: IcebergSnapshot
    run: Run
    snapshot_id: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class Manifests:
    """A staged snapshot's manifests in their order, those newly written, and counts for the summary."""

    every: tuple[Manifest, ...]
    written: tuple[Manifest, ...]
    replaced: int
    entries_processed: int

    @property
    def summary(self) -> Mapping[str, str]:
        created, kept = len(self.written), len(self.every) - len(self.written)
        return {
            "manifests-created": str(created),
            "manifests-kept": str(kept),
            "manifests-replaced": str(self.replaced),
            "entries-processed": str(self.entries_processed),
        }


def next_manifests(place: StagedSnapshot, change: FileChange, *, merges: bool) -> Manifests:
    """Write the parent's manifests without the removed files, and new manifests for the added files.

    Raises CorruptMetadata if a removed file is in no manifest.
    """
    parent = place.parent
    # Drop manifests that list only files deleted by older snapshots, as Java does.
    listed = [manifest for manifest in parent.manifests if manifest.live_files]
    merged = {manifest.path for manifest in to_merge(listed, parent.schema)} if merges else set()
    work = _Manifests(place, gone={file.identity: file for file in change.removed})
    new = work.write_added(change.added)
    kept: list[Manifest] = []
    for manifest in listed:
        if manifest.path in merged or _may_hold(manifest, work.gone.values()):
            kept += work.rewrite(manifest, pooled=manifest.path in merged)
        else:
            kept.append(manifest)
    kept += work.write_pools()
    if work.gone:
        lost = next(iter(work.gone.values()))
        raise CorruptMetadata(f"{parent.table.name} version {parent.version}", f"a manifest with {lost.path}", "none")
    return Manifests((*new, *kept), tuple(work.written), work.replaced, work.entries_processed)


@dataclass
class _Manifests:
    """`gone` are removed files not yet seen in a manifest; `pools` are entries of manifests to be merged."""

    place: StagedSnapshot
    gone: dict[Identity, ContentFile]
    pools: dict[Group, list[Entry]] = field(default_factory=dict)
    written: list[Manifest] = field(default_factory=list)
    replaced: int = 0
    entries_processed: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def rewrite(self, manifest: Manifest, *, pooled: bool) -> list[Manifest]:
        """The same manifest if none of its files is removed, else a new one; empty if `pooled` for a later merge."""
        place = self.place
        manifest_entries = read_manifest(place.storage, manifest, place.parent.schema)
        live = [entry for entry in manifest_entries if entry.status is not Status.DELETED]
        going = {entry.file.identity for entry in live} & self.gone.keys()
        if not going and not pooled:
            return [manifest]
        self.replaced += 1
        self.entries_processed += len(live)
        for identity in going:
            del self.gone[identity]
        entries = [self._carried(entry, going) for entry in live]
        if pooled:
            self.pools.setdefault((manifest.content, manifest.spec_id), []).extend(entries)
            return []
        return [self._write((manifest.content, manifest.spec_id), entries)]

    def _carried(self, entry: Entry, going: set[Identity]) -> Entry:
        if entry.file.identity in going:
            return Entry(Status.DELETED, self.place.snapshot_id, entry.file)
        return replace(entry, status=Status.EXISTING)

    def write_added(self, files: Sequence[NewFile]) -> list[Manifest]:
        groups: dict[Group, list[NewFile]] = {}
        for file in files:
            groups.setdefault((_kind(file.content), file.spec_id), []).append(file)
        return [manifest for group in sorted(groups) for manifest in self._write_all(group, groups[group])]

    def write_pools(self) -> list[Manifest]:
        return [manifest for group, entries in self.pools.items() for manifest in self._write_all(group, entries)]

    def _write_all(self, group: Group, entries: Iterable[Entry | NewFile]) -> list[Manifest]:
        """Write as many manifests as the target size needs, by the average bytes per entry of this table."""
        ordered, parent = clustered(entries), self.place.parent
        alike = [each for each in parent.manifests if each.content is group[0] and each.live_files]
        listed = sum(each.live_files + each.deleted_files for each in alike)
        entry_bytes = sum(each.bytes for each in alike) / listed if listed else _ENTRY_BYTES
        size = max(1, int(target_bytes(parent.schema.properties) / entry_bytes))
        return [self._write(group, ordered[start : start + size]) for start in range(0, len(ordered), size)]

    def _write(self, group: Group, entries: Sequence[Entry | NewFile]) -> Manifest:
        place, schema = self.place, self.place.parent.schema
        name = manifest_name(place.run, place.snapshot_id, next(self.numbers))
        written = write_manifest(
            place.storage,
            metadata_location(schema, name),
            entries,
            schema=schema,
            spec_id=group[1],
            content=group[0],
            snapshot_id=place.snapshot_id,
            sequence_number=place.sequence_number,
        )
        self.written.append(written)
        return written


def _may_hold(manifest: Manifest, files: Iterable[ContentFile]) -> bool:
    return any(_may_hold_file(manifest, file) for file in files)


def _may_hold_file(manifest: Manifest, file: ContentFile) -> bool:
    """Whether the manifest may list the file, by content, spec and sequence numbers in the manifest list."""
    alike = manifest.content is _kind(file.content) and manifest.spec_id == file.spec_id
    after = manifest.sequence_number >= file.file_sequence_number
    return alike and after and manifest.min_sequence_number <= file.sequence_number


def _kind(content: FileContent) -> ManifestContent:
    return ManifestContent.DATA if content is FileContent.DATA else ManifestContent.DELETES
