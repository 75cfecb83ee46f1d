"""The commits before a version, newest first -> compactions of other writers that made hidden rows visible again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.paimon.gate.compactions import BucketChange, Compaction, Shown, Vectors, shown_again, unhidden
from nightkeep.formats.paimon.metadata.entries import DELETE, decoding, read_index, read_list, read_manifest
from nightkeep.formats.paimon.metadata.schema import has_fixed_buckets
from nightkeep.formats.paimon.metadata.snapshot import VECTORS_INDEX, Bucket, PaimonSnapshot, Place
from nightkeep.formats.paimon.metadata.snapshot_files import parse_snapshot
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.model.run_names import COMMIT_USER
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol import Seen, Undone, Watch
from nightkeep.storage import Storage

HORIZON_MS: Final = 7 * DAY_MS
"""How far back a table's history is examined the first time."""


@dataclass(frozen=True, slots=True)
class _Commit:
    raw: Mapping[str, object]
    seen: Seen

    @property
    def kind(self) -> object:
        return self.raw["commitKind"]

    @property
    def is_foreign(self) -> bool:
        return not str(self.raw["commitUser"]).startswith(COMMIT_USER)


@dataclass(slots=True)
class _Past:
    """State of the examination at one version: its live files, and findings about it and later versions.

    `kinds` are the kinds of commits that may make rows visible again.
    `pending` are findings on marks in files that an earlier commit may have removed.
    """

    storage: Storage
    units: Mapping[Place, Bucket]
    kinds: frozenset[str]
    live: dict[Place, set[str]]
    shown: list[tuple[_Commit, Shown]] = field(default_factory=list)
    pending: list[tuple[_Commit, Place, Shown]] = field(default_factory=list)
    vectors: dict[object, Mapping[Place, Vectors]] = field(default_factory=dict)


def watch(storage: Storage, head: PaimonSnapshot, since: Seen | None, *, now_ms: int) -> Watch | None:
    """Findings on commits after `since`, or of the last week. Stops at the first snapshot that cannot be read.

    None are on a table without keys whose rows have no bucket: there Java's committer compares the vectors of files.
    Of fixed buckets without keys it does not, and deletes are looked at too: their vectors replace all of the bucket's.
    """
    commits = _commits(storage, head.version)
    newest = next(commits, None)
    if newest is None:
        return None
    if not (head.schema.primary_keys or has_fixed_buckets(head.schema)):
        return Watch(newest.seen, ())
    units = {(unit.partition_bytes, int(unit.key.bucket or 0)): unit for unit in head.units}
    kinds = frozenset({"COMPACT"} if head.schema.primary_keys else {"COMPACT", "OVERWRITE"})
    past = _Past(storage, units, kinds, {place: {file.name for file in unit.files} for place, unit in units.items()})
    # Our clock may be ahead of all writers' clocks.
    since_ms = min(now_ms, int(str(newest.raw["timeMillis"]))) - HORIZON_MS
    with suppress(EvidenceError, RefusedTable):
        _look_back(past, newest, commits, known=_known(storage, head, since), since_ms=since_ms)
    return Watch(newest.seen, tuple(_undone(past)))


def _commits(storage: Storage, version: int) -> Iterator[_Commit]:
    """Snapshots from `version` down to the oldest one that exists."""
    for number in range(version, 0, -1):
        name = f"snapshot/snapshot-{number}"
        try:
            data = storage.read(name)
        except MissingFile:
            return
        yield _Commit(parse_snapshot(data, subject=name), Seen(number, hashlib.sha256(data).hexdigest()[:32]))


def _known(storage: Storage, head: PaimonSnapshot, since: Seen | None) -> int:
    """The version up to which history was checked before; 0 if none was, or if its id now has another snapshot."""
    if since is None or since.version > head.version:
        return 0
    there = next(_commits(storage, since.version), None)
    return since.version if there is None or there.seen == since else 0


def _look_back(past: _Past, newest: _Commit, older: Iterator[_Commit], *, known: int, since_ms: int) -> None:
    commit = newest
    for parent in older:
        is_young = int(str(commit.raw["timeMillis"])) >= since_ms
        is_new = commit.seen.version > known and (bool(known) or is_young)
        if not is_new and not (past.pending and is_young):
            return
        _examine(past, commit, parent, judged=is_new)
        commit = parent


def _examine(past: _Past, commit: _Commit, parent: _Commit, *, judged: bool) -> None:
    if commit.kind == "APPEND":
        return
    changes = _changes(past.storage, commit)
    past.shown += [(by, finding) for by, place, finding in past.pending if _removes(changes, place, finding.marked)]
    past.pending = [waiting for waiting in past.pending if not _removes(changes, waiting[1], waiting[2].marked)]
    if judged and commit.is_foreign and commit.kind in past.kinds:
        for place, finding in _shown(past, commit, parent, changes):
            if finding.marked is None:
                past.shown.append((commit, finding))
            else:
                past.pending.append((commit, place, finding))
    for place, change in changes.items():
        past.live.setdefault(place, set()).update(change.removed)


def _removes(changes: Mapping[Place, BucketChange], place: Place, name: str | None) -> bool:
    return place in changes and name in changes[place].removed


def _changes(storage: Storage, commit: _Commit) -> Mapping[Place, BucketChange]:
    sides: dict[Place, tuple[dict[str, Record], dict[str, Record]]] = {}
    with decoding(f"snapshot-{commit.seen.version}", "entries of data files"):
        for meta in read_list(storage, str(commit.raw["deltaManifestList"])).records:
            for entry in read_manifest(storage, meta).records:
                removed, added = sides.setdefault((entry["_PARTITION"], entry["_BUCKET"]), ({}, {}))
                side = removed if entry["_KIND"] == DELETE else added
                side[entry["_FILE"]["_FILE_NAME"]] = entry["_FILE"]
    return {place: _net(removed, added) for place, (removed, added) in sides.items()}


def _net(removed: Mapping[str, Record], added: Mapping[str, Record]) -> BucketChange:
    return BucketChange(
        {name: file for name, file in removed.items() if name not in added},
        {name: file for name, file in added.items() if name not in removed},
    )


def _shown(
    past: _Past, commit: _Commit, parent: _Commit, changes: Mapping[Place, BucketChange]
) -> Iterator[tuple[Place, Shown]]:
    """Findings on the buckets that still exist. A bucket that was overwritten later has nothing left to lose."""
    before, after = (_vectors(past, snapshot.raw.get("indexManifest")) for snapshot in (parent, commit))
    for place in sorted((changes.keys() | before.keys() | after.keys()) & past.units.keys()):
        change, old, new = changes.get(place), before.get(place, Vectors()), after.get(place, Vectors())
        if change is None and old.file == new.file:
            continue
        compaction = Compaction(
            past.storage, past.units[place], change or BucketChange({}, {}), old, new, past.live.get(place, set())
        )
        with decoding(f"snapshot-{commit.seen.version}", "counts of rows"):
            find = shown_again if commit.kind == "COMPACT" else unhidden
            yield from ((place, finding) for finding in find(compaction))


def _vectors(past: _Past, name: object) -> Mapping[Place, Vectors]:
    if name not in past.vectors:
        # The vectors of a commit are needed once more, as those of its successor's parent.
        past.vectors = {key: past.vectors[key] for key in [*past.vectors][-1:]}
        past.vectors[name] = _read_vectors(past.storage, name)
    return past.vectors[name]


def _read_vectors(storage: Storage, name: object) -> Mapping[Place, Vectors]:
    index = read_index(storage, name)
    with decoding(f"manifest/{name}", "entries of vector files"):
        return {
            (entry["_PARTITION"], entry["_BUCKET"]): Vectors(
                str(entry["_FILE_NAME"]), {where.data_file: where for where in vector_ranges(entry)}
            )
            for entry in (index.records if index else ())
            if entry["_INDEX_TYPE"] == VECTORS_INDEX
        }


def _undone(past: _Past) -> Iterator[Undone]:
    commits = {commit.seen.version: commit for commit, _ in past.shown}
    for _, commit in sorted(commits.items()):
        details = tuple(shown.detail for by, shown in past.shown if by is commit)
        yield Undone(commit.seen, str(commit.raw["commitUser"]), details)
