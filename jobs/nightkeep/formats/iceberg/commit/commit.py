"""Edits -> one staged snapshot -> the table's newest version, in one atomic step of the catalog.

Iceberg table spec, "Snapshots", "Optimistic Concurrency" and "Row Lineage". Staging writes everything but the catalog's
own change. The last staged file is the snapshot in the form in which the catalog will add it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence

from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.commit.commit_changes import FileChange, change_of, live_files
from nightkeep.formats.iceberg.commit.conflicts import edits_of
from nightkeep.formats.iceberg.commit.staging import StagedSnapshot, next_manifests
from nightkeep.formats.iceberg.commit.summary import OPERATIONS, change_summary, new_totals, own_keys
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, Manifest, NewFile, Status
from nightkeep.formats.iceberg.metadata.locations import name_in, storage_name
from nightkeep.formats.iceberg.metadata.manifest_list import write_manifest_list
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.naming import MOVED_PROPERTY, RUN_PROPERTY, manifest_list_name, staged_name
from nightkeep.formats.iceberg.metadata.new_locations import metadata_location
from nightkeep.formats.iceberg.metadata.partition import unit_key
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT, IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import (
    ancestors,
    decode,
    digest_on_main,
    head,
    integer,
    parent_id,
    summary_of,
)
from nightkeep.model import Candidate, Rewrite, Run, UnitKey
from nightkeep.model.run_names import committer, horizon_ms
from nightkeep.storage import Storage
from nightkeep.storage.times import not_ahead


def stage(storage: Storage, parent: IcebergSnapshot, rewrites: Sequence[Rewrite[IcebergEdit]], run: Run) -> Candidate:
    """Write manifests, manifest list and snapshot on top of `parent`. No version refers to these files yet.

    Raises CorruptMetadata if a rewritten data file is no longer live in `parent`.
    """
    edits = edits_of(rewrites)
    change, place = change_of(parent, edits), _place(storage, parent, run)
    merges, intent = any(edit.rewrites_manifests for edit in edits.every), edits.every[0].intent
    if not (change.removed or change.added or merges):
        # The edits only state that equality deletes delete none of their rows. Other edits must cover the rest of the
        # scope before those deletes can be removed.
        return Candidate(parent.table, parent.version, parent.identity, "", (), units=())
    summary = {"operation": OPERATIONS[intent.operation], **own_keys(intent, committer(run))}
    moved = {str(new.spec_id) for edit in edits.every if _moves(edit) for new in edit.added}
    summary |= {MOVED_PROPERTY: ", ".join(sorted(moved))} if moved else {}
    name, written = _write(place, change, summary, merges=merges)
    return Candidate(
        table=parent.table,
        version=place.snapshot_id,
        parent=parent.identity,
        metadata=name,
        staged=(*(output for rewrite in rewrites for output in rewrite.outputs), *written, name),
        units=edits.keys,
    )


def _moves(edit: IcebergEdit) -> bool:
    """Whether an edit writes rows of one partition spec to partitions of another."""
    old, new = (
        {each.spec_id for each in files if each.content is FileContent.DATA} for files in (edit.removed, edit.added)
    )
    return bool(new - old)


def stage_files(
    storage: Storage, parent: IcebergSnapshot, added: Sequence[NewFile], run: Run, *, summary: Mapping[str, str]
) -> Candidate:
    """As `stage`, for a snapshot that only adds files; `summary` comes first in the snapshot's summary.

    The candidate's `staged` names the metadata files of the snapshot, but not the added files.
    """
    place = _place(storage, parent, run)
    name, written = _write(place, FileChange((), tuple(added)), summary, merges=False)
    return Candidate(parent.table, place.snapshot_id, parent.identity, name, (*written, name), units=())


def _place(storage: Storage, parent: IcebergSnapshot, run: Run) -> StagedSnapshot:
    table = head(parent.metadata, subject=parent.metadata_location)
    # Format version 1 has no sequence numbers: all files are of number 0.
    number = table.sequence_number + 1 if table.format_version > 1 else 0
    return StagedSnapshot(storage, parent, run, _fresh_id(table.snapshots.keys()), number)


def _fresh_id(taken: Collection[int]) -> int:
    """A random positive long that is no snapshot's id yet, generated as in Java (SnapshotIdGeneratorUtil.java)."""
    number = uuid.uuid4().int & ((1 << 63) - 1)
    return _fresh_id(taken) if number in taken or not number else number


def _write(
    place: StagedSnapshot, change: FileChange, summary: Mapping[str, str], *, merges: bool
) -> tuple[str, list[str]]:
    """Write the staged snapshot. Returns its name, and the names of the other files written for it."""
    storage, parent, run = place.storage, place.parent, place.run
    manifests = next_manifests(place, change, merges=merges)
    table = head(parent.metadata, subject=parent.metadata_location)
    location = metadata_location(parent.schema, manifest_list_name(run, place.snapshot_id))
    listed = write_manifest_list(
        storage,
        location,
        manifests.every,
        format_version=table.format_version,
        snapshot_id=place.snapshot_id,
        parent_id=_parent_id(parent.version),
        sequence_number=place.sequence_number,
        next_row_id=table.next_row_id,
    )
    now_ms = not_ahead(run.now_ms, storage, name_in(storage, location))
    snapshot: dict[str, object] = {
        "snapshot-id": place.snapshot_id,
        **({} if parent.version == NO_SNAPSHOT else {"parent-snapshot-id": parent.version}),
        **({"sequence-number": place.sequence_number} if table.format_version > 1 else {}),
        # Time travel needs timestamps that never decrease, even if the last writer's clock was ahead of ours. Java
        # refuses a commit more than a minute older than the last update (TableMetadata.java).
        "timestamp-ms": max(now_ms, parent.timestamp_ms, table.updated_ms),
        "manifest-list": location,
        "summary": {**summary, **_change_summary(place, change), **manifests.summary},
        "schema-id": parent.metadata["current-schema-id"],
    }
    if table.next_row_id is not None and listed.next_row_id is not None:
        snapshot |= {"first-row-id": table.next_row_id, "added-rows": listed.next_row_id - table.next_row_id}
    name = name_in(storage, metadata_location(parent.schema, staged_name(run, place.snapshot_id)))
    storage.put(name, json.dumps(snapshot, ensure_ascii=False).encode())
    return name, [*(manifest.name for manifest in manifests.written), storage_name(location)]


def _change_summary(place: StagedSnapshot, change: FileChange) -> Mapping[str, str]:
    parent = place.parent
    gone = {file.identity for file in change.removed}
    live = [file for file in live_files(parent) if file.identity not in gone]
    changes = change_summary(change.added, change.removed)
    return {**changes, **new_totals(parent.summary, changes, (*live, *change.added))}


def commit(handle: TableHandle, candidate: Candidate) -> bool:
    """Ask the catalog to make the staged snapshot the table's newest. Returns whether it did.

    The catalog itself checks that main still points to the parent and that the table has the same UUID.
    """
    parent, storage = _parent_id(candidate.parent_version), handle.storage
    metadata, location = handle.load()
    table = head(metadata, subject=location)
    # Check this before reading the staged snapshot: its file is gone once the snapshot is committed.
    is_there = digest_on_main(metadata, candidate.parent_version, subject=location) == candidate.parent.commit
    if table.current != parent or not is_there:
        return False
    staged = decode(storage.read(candidate.metadata), subject=candidate.metadata)
    if not handle.commit(staged, parent, table_uuid=table.uuid):
        return False
    storage.delete(candidate.metadata)
    return True


def committed(handle: TableHandle, run: Run) -> tuple[tuple[int, int], ...]:
    """The snapshots that this run committed to main, oldest first, each with its parent. Reads table metadata only."""
    metadata, location = handle.load()
    table = head(metadata, subject=location)
    since_ms = horizon_ms(run, table.updated_ms)
    versions: list[tuple[int, int]] = []
    for version in ancestors(metadata, table.current, subject=location):
        snapshot = table.snapshots[version]
        if summary_of(snapshot, subject=location).get(RUN_PROPERTY) == committer(run):
            parent = parent_id(snapshot, subject=location)
            versions.append((version, NO_SNAPSHOT if parent is None else parent))
        elif integer(snapshot, "timestamp-ms", subject=location) < since_ms:
            break
    return tuple(reversed(versions))


def units_of(storage: Storage, snapshot: IcebergSnapshot) -> tuple[UnitKey, ...]:
    """The partitions that one of our commits changed. Reads only its own manifests: its parent may be expired."""
    own = (manifest for manifest in snapshot.manifests if manifest.snapshot_id == snapshot.version)
    keys: dict[UnitKey, None] = {}
    for file in (file for manifest in own for file in _changed(storage, snapshot, manifest)):
        # Global equality deletes belong to no partition.
        if file.content is not FileContent.EQUALITY_DELETES or not snapshot.schema.is_global(file.spec_id):
            keys[unit_key(snapshot.schema, file.spec_id, file.partition)] = None
    return tuple(keys)


def _changed(storage: Storage, snapshot: IcebergSnapshot, manifest: Manifest) -> Iterator[ContentFile]:
    for entry in read_manifest(storage, manifest, snapshot.schema):
        if entry.status is not Status.EXISTING and entry.snapshot_id == snapshot.version:
            yield entry.file


def _parent_id(version: int) -> int | None:
    return None if version == NO_SNAPSHOT else version
