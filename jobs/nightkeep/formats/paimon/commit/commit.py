"""Bucket edits -> a complete staged snapshot -> a visible one. Checks what others commit in between.

C/operation/FileStoreCommitImpl.tryCommitOnce for a COMPACT commit. Of a table with keys the conflict check is stricter
than ConflictDetection: Java accepts two compactions of one bucket that together lose deletes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.documents import parse_object
from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.commit.append_conflicts import append_conflict
from nightkeep.formats.paimon.commit.changelog import write_changelog
from nightkeep.formats.paimon.commit.index_manifest import index_records
from nightkeep.formats.paimon.commit.manifest_merging import ManifestAccess, merged_manifests
from nightkeep.formats.paimon.metadata.entries import ADD, DELETE, read_list, read_manifest
from nightkeep.formats.paimon.metadata.manifests import ManifestWriter
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.own_commits import EXPIRY_CLOCK, MERGED_PARENT, merged_parent
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.row_changes import stated_changes
from nightkeep.formats.paimon.metadata.row_totals import total_rows
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import digest, newest_first, parse_snapshot, snapshot_ids
from nightkeep.model import Candidate, Rewrite, Run, UnitKey, VersionIdentity, digest_of
from nightkeep.model.run_names import committer, horizon_ms
from nightkeep.storage import Storage
from nightkeep.storage.exclusive import require_exclusive_create
from nightkeep.storage.times import not_ahead

BATCH_COMMIT_IDENTIFIER = (1 << 63) - 1
"""Long.MAX_VALUE, BatchWriteBuilder.COMMIT_IDENTIFIER."""
MAX_SEQUENCE_PROPERTY = "sequence.generation.max-sequence-number"
_PER_COMMIT = (
    "uuid",
    "changelogManifestList",
    "changelogManifestListSize",
    "changelogRecordCount",
    "properties",
    "operation",
    "statistics",
)


def stage(storage: Storage, parent: PaimonSnapshot, rewrites: Sequence[Rewrite[BucketEdit]], run: Run) -> Candidate:
    """Write manifest, lists, index manifest and snapshot JSON of the version after `parent`.

    Raises RefusedTable for a store on which a commit could overwrite another's.
    """
    require_exclusive_create(storage)
    naming, edits = PaimonNaming(run), [rewrite.edit for rewrite in rewrites]
    writer = ManifestWriter(storage, parent, naming)
    entries = [entry for edit in edits for entry in _entries(edit)]
    before = [*parent.base_manifests, *parent.delta_manifests]
    merged = merged_manifests(
        before, parent.schema, ManifestAccess(lambda meta: read_manifest(storage, meta).records, writer.manifest)
    )
    base = writer.manifest_list(merged)
    delta = writer.manifest_list([writer.manifest(entries)] if entries else [])
    records = index_records(parent, edits)
    index = None if records is None else writer.index_manifest(records)
    now_ms = not_ahead(run.now_ms, storage, f"manifest/{base.name}")
    own = {} if merged == before else {MERGED_PARENT: parent.identity.commit}
    raw = _snapshot_json(storage, parent, entries, edits=edits, run=replace(run, now_ms=now_ms), own=own) | {
        "baseManifestList": base.name,
        "baseManifestListSize": base.bytes,
        "deltaManifestList": delta.name,
        "deltaManifestListSize": delta.bytes,
        **write_changelog(writer, edits),
    }
    if index is not None:
        raw["indexManifest"] = index.name
    name = f"snapshot/{naming.snapshot()}"
    storage.put(name, json.dumps(raw, indent=2).encode())
    outputs = [name for rewrite in rewrites for name in rewrite.outputs]
    return Candidate(
        table=parent.table,
        version=parent.version + 1,
        parent=parent.identity,
        metadata=name,
        staged=(*outputs, *writer.written, name),
        units=tuple(dict.fromkeys(rewrite.key for rewrite in rewrites if not rewrite.edit.is_empty)),
    )


def commit(storage: Storage, candidate: Candidate) -> bool:
    """Create snapshot-<id> with the staged bytes, then move the LATEST hint.

    False if another commit has the id, or the parent was replaced. The hint may be old, and stays so if it was replaced
    at the same moment.
    """
    name, temporary = f"snapshot/snapshot-{candidate.version}", f"{candidate.metadata}.tmp"
    # Not snapshot-<id>.<anything>: Java's listing parses a number from every name that starts with snapshot-.
    if storage.exists(name):
        return False
    parent = candidate.parent
    won = storage.put_if_absent(
        name,
        storage.read(candidate.metadata),
        temporary=temporary,
        may_go=lambda: digest(storage, parent.version) == parent.commit,
    )
    # Our create may have succeeded with its answer lost, so that its retry failed: look whose snapshot it is.
    if not won and not visible(storage, candidate):
        return False
    if undermined(storage, candidate) is None:
        storage.replace("snapshot/LATEST", str(candidate.version).encode(), temporary=temporary)
    storage.delete(candidate.metadata)
    return True


def undermined(storage: Storage, candidate: Candidate) -> str | None:
    """Why the version is not sound, None if it is: a rollback or a new table removed its parent during the commit.

    Expiry removes the oldest snapshots first. A parent that is gone while older ones are left did not expire.
    """
    parent = candidate.parent
    identity = digest(storage, parent.version)
    if identity == parent.commit or not visible(storage, candidate):
        return None
    staged = f"snapshot {parent.version}, which it was staged on"
    if identity is not None:
        return f"{staged}, was replaced while it was committed"
    is_older_left = any(number < parent.version for number in snapshot_ids(storage))
    return f"{staged}, was rolled back while it was committed" if is_older_left else None


def parent_of(storage: Storage, ours: PaimonSnapshot) -> tuple[VersionIdentity | None, str | None]:
    """The snapshot below one of our commits, None if it is gone; and why it is not our parent, None if it is.

    Our base list names exactly the manifests of our parent, unless it has merged some: then our commit names it.
    """
    number = ours.version - 1
    name, staged = f"snapshot/snapshot-{number}", f"snapshot {number}, which it was staged on"
    try:
        data = storage.read(name)
    except MissingFile:
        is_older_left = any(older < number for older in snapshot_ids(storage))
        return None, f"{staged}, was rolled back while it was committed" if is_older_left else None
    found = digest_of(data)
    named = merged_parent(ours.raw)
    is_parent = _is_base(storage, data, ours) if named is None else named == found
    why = None if is_parent else f"{staged}, was replaced while it was committed"
    return VersionIdentity(number, found), why


def _is_base(storage: Storage, data: bytes, ours: PaimonSnapshot) -> bool:
    raw = parse_snapshot(data, subject=f"snapshot {ours.version - 1}")
    lists = (read_list(storage, str(raw[key])) for key in ("baseManifestList", "deltaManifestList"))
    below = [record["_FILE_NAME"] for container in lists for record in container.records]
    return below == [record["_FILE_NAME"] for record in ours.base_manifests]


def visible(storage: Storage, candidate: Candidate) -> bool:
    """Whether snapshot-<id> holds this candidate's own lists. May be asked again at any time."""
    name = f"snapshot/snapshot-{candidate.version}"
    if not storage.exists(name):
        return False
    raw = parse_snapshot(storage.read(name), subject=name)
    lists = {f"manifest/{raw[key]}" for key in ("baseManifestList", "deltaManifestList")}
    return lists <= set(candidate.staged)


def committed(storage: Storage, run: Run) -> tuple[int, ...]:
    """The ids of this run's snapshots among those that still exist, ascending."""
    versions: list[int] = []
    newest_ms: int | None = None
    for raw in newest_first(storage):
        made_ms = int(str(raw["timeMillis"]))
        newest_ms = made_ms if newest_ms is None else newest_ms
        if raw["commitUser"] == committer(run):
            versions.append(int(str(raw["id"])))
        elif made_ms < horizon_ms(run, newest_ms):
            break
    return tuple(reversed(versions))


def conflicts(
    planned: PaimonSnapshot, head: PaimonSnapshot, rewrites: Sequence[Rewrite[BucketEdit]]
) -> tuple[tuple[UnitKey, str], ...]:
    """Units whose bucket changed since the plan, other than by more level-0 files. Of a table without keys: units of
    which a file changed that an edit names."""
    schema = _schema_conflict(planned.schema, head.schema)
    if schema:
        return tuple((key, schema) for key in dict.fromkeys(rewrite.key for rewrite in rewrites))
    reasons: dict[UnitKey, str] = {}
    for rewrite in rewrites:
        reason = _bucket_conflict(planned, head, rewrite)
        if reason:
            reasons.setdefault(rewrite.key, reason)
    return tuple(reasons.items())


def _schema_conflict(planned: PaimonSchema, head: PaimonSchema) -> str | None:
    """Why the schema change is a conflict. Only an added column is known to be safe for files written before it."""
    if planned == head:
        return None
    kept = {field.id: field for field in head.fields}
    added_only = all(kept.get(field.id) == field for field in planned.fields)
    same_rest = (
        planned.partition_keys == head.partition_keys
        and planned.primary_keys == head.primary_keys
        and dict(planned.options) == dict(head.options)
    )
    if added_only and same_rest:
        return None
    return f"schema {planned.id} was planned on, schema {head.id} does more than add columns to it"


def _bucket_conflict(planned: PaimonSnapshot, head: PaimonSnapshot, rewrite: Rewrite[BucketEdit]) -> str | None:
    before, after = planned.by_key[rewrite.key], head.by_key.get(rewrite.key)
    if not planned.schema.primary_keys:
        return append_conflict(before, after, rewrite.edit)
    if after is None:
        return "the bucket is gone"
    if before.total_buckets != after.total_buckets:
        return f"the table was rescaled from {before.total_buckets} to {after.total_buckets} buckets"
    if before.index_files != after.index_files:
        return f"its deletion vectors moved from {_named(before.index_files)} to {_named(after.index_files)}"
    if _places(before, lifted=True) != _places(after, lifted=True):
        return "files above level 0 changed"
    missing = _places(before, lifted=False) - _places(after, lifted=False)
    if missing:
        return f"level-0 files are gone: {', '.join(name for name, _ in sorted(missing))}"
    return _expiry_conflict(before, after, rewrite.edit)


def _expiry_conflict(before: Bucket, after: Bucket, edit: BucketEdit) -> str | None:
    """Why expired rows may not go any more. Without vectors, readers merge new rows with those that would be gone."""
    fresh = _places(after, lifted=False) - _places(before, lifted=False)
    if fresh and edit.intent.clock_ms is not None and not has_vectors(before.schemas.current):
        return f"rows expire, and level-0 files were added: {', '.join(name for name, _ in sorted(fresh))}"
    return None


def _named(files: Sequence[str]) -> str:
    return ", ".join(files) or "no file"


def _places(bucket: Bucket, *, lifted: bool) -> set[tuple[str, int]]:
    return {(file.name, file.level) for file in bucket.files if (file.level > 0) == lifted}


def _entries(edit: BucketEdit) -> Iterable[Record]:
    """The delta's entries, DELETE before ADD: expiry removes each path whose last entry in a delta is DELETE."""
    yield from edit.entries(DELETE, edit.removed)
    yield from edit.entries(ADD, edit.added)


def _snapshot_json(
    storage: Storage,
    parent: PaimonSnapshot,
    entries: Sequence[Record],
    *,
    edits: Sequence[BucketEdit],
    run: Run,
    own: Mapping[str, str],
) -> dict[str, object]:
    """`stated`: properties of our own."""
    delta = sum(entry["_FILE"]["_ROW_COUNT"] * (1 if entry["_KIND"] == ADD else -1) for entry in entries)
    raw = {key: value for key, value in parent.raw.items() if key not in _PER_COMMIT}
    raw |= {
        "version": 3,
        "uuid": str(uuid.uuid4()),
        "id": parent.version + 1,
        "schemaId": parent.schema.id,
        "commitUser": committer(run),
        "commitIdentifier": BATCH_COMMIT_IDENTIFIER,
        "commitKind": "COMPACT",
        "timeMillis": max(run.now_ms, int(str(parent.raw["timeMillis"]))),
        "totalRecordCount": total_rows(parent) + delta,
        "deltaRecordCount": delta,
    }
    raw |= _carried_statistics(storage, parent) | _sequence_property(parent, entries)
    stated = stated_changes([edit.intent for edit in edits])
    properties = {**_properties(raw), **_properties(stated), **_clock(edits), **own}
    return raw | stated | ({"properties": properties} if properties else {})


def _properties(raw: Mapping[str, object]) -> Mapping[str, object]:
    held = raw.get("properties")
    return held if isinstance(held, Mapping) else {}


def _clock(edits: Sequence[BucketEdit]) -> Mapping[str, str]:
    """For the check: the time by which rows expired."""
    clocks = {edit.intent.clock_ms for edit in edits} - {None}
    return dict.fromkeys([EXPIRY_CLOCK], str(*clocks)) if len(clocks) == 1 else {}


def _carried_statistics(storage: Storage, parent: PaimonSnapshot) -> dict[str, object]:
    """The parent's table statistics, kept while the schema they were made for is the latest."""
    name = parent.raw.get("statistics")
    if name is None or not storage.exists(f"statistics/{name}"):
        return {}
    made_for = parse_object(storage.read(f"statistics/{name}"), subject=f"statistics/{name}").get("schemaId")
    return {"statistics": name} if made_for == parent.schema.id else {}


def _sequence_property(parent: PaimonSnapshot, entries: Sequence[Record]) -> dict[str, object]:
    """With write.sequence-number-init-mode=snapshot, the snapshot stores the highest sequence number."""
    if parent.schema.options.get("write.sequence-number-init-mode", "").lower() != "snapshot":
        return {}
    previous = _properties(parent.raw).get(MAX_SEQUENCE_PROPERTY)
    live = [file.max_sequence for unit in parent.units for file in unit.files]
    added = [entry["_FILE"]["_MAX_SEQUENCE_NUMBER"] for entry in entries if entry["_KIND"] == ADD]
    numbers = [*([int(str(previous))] if previous is not None else live), *added]
    return {"properties": {MAX_SEQUENCE_PROPERTY: str(max(numbers))}} if numbers else {}
