"""The log -> the files that a Delta table needs: those of the newest version, and those removed from it recently.

VacuumCommand.scala, getValidFilesFromSnapshot: adds and unexpired tombstones of the state, with their vectors. We also
keep change files of recent commits, vectors at absolute paths, and tombstones that a checkpoint dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as arrow_compute

from nightkeep.formats.delta.metadata.actions import Action, Raw, long_value, vector_id
from nightkeep.formats.delta.metadata.checkpoints import checkpoint_head
from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.locations import storage_name
from nightkeep.formats.delta.metadata.log_files import odd_paths
from nightkeep.formats.delta.metadata.log_segment import Listing, listing, segment
from nightkeep.formats.delta.metadata.replay import FileKey
from nightkeep.formats.delta.retention.action_files import (
    bodies,
    checkpoint_columns,
    checkpoint_files,
    commit_actions,
    data_names,
    dated_removals,
    files,
    left_removed_ms,
    vector_names,
    written_ms,
)
from nightkeep.formats.delta.retention.evidence import Commit
from nightkeep.formats.delta.retention.expire import RemovedVersions, removed
from nightkeep.formats.delta.retention.horizon import SKEW_MS, threshold_ms
from nightkeep.formats.delta.retention.log_removals import CommitRemovals, NamedByLog, removed_by
from nightkeep.formats.delta.retention.version_audit import Proof
from nightkeep.model import Address
from nightkeep.model.arrow_types import Array, Datum
from nightkeep.protocol.table_files import FILES, Reach, Retention, Root, Unproven
from nightkeep.storage import Storage

pc: Final[Any] = arrow_compute
"""The stubs know few of the combinations of types."""
Row = tuple[str, int | None, bool]


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files that one commit removed, and its change files, if removed since `since_ms`."""

    name: str
    modified_ms: int
    since_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files of one version, the tombstones since `since_ms` in its checkpoint, and the files of `change`.

    `needed`: the files must exist, because readers need them.
    """

    version: int
    since_ms: int
    now_ms: int
    change: CommitFiles | None = None
    needed: bool = True


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """A file of a checkpoint. Later commits replaced the files in `gone`."""

    name: str
    gone: frozenset[FileKey]
    since_ms: int
    now_ms: int
    needed: bool


RootFiles = VersionFiles | CommitFiles | RemovedVersions | NamedByLog | None
Source = CheckpointPart | CommitRemovals


def roots(address: Address, storage: Storage, retention: Retention) -> tuple[Root[RootFiles], ...]:
    """A root for every commit in the log, so that a later listing without new roots has missed no commit.

    The newest root is the version's state. Older roots are the files that their commits removed. Each version to keep
    has one more root; a version to keep that the log can no longer rebuild keeps nothing. Files of other versions are
    kept but need not exist: the table's own retention may be shorter, and another VACUUM may have removed some.
    """
    log_files = listing(storage)
    newest = head(storage, table=address.name, version=log_files.newest)
    since_ms = threshold_ms(newest.metadata, retention.now_ms, retention.older_than_ms)
    state = partial(VersionFiles, since_ms=since_ms, now_ms=retention.now_ms)
    kept = sorted(version for version in retention.keep if log_files.oldest <= version < log_files.newest)
    return (
        *_versions(log_files, since_ms, retention.now_ms),
        *(Root(f"version {version}, kept", state(version, needed=False), version) for version in kept),
    )


def reach(storage: Storage, root: Root[RootFiles]) -> Reach[Source]:
    """The files of a root. Raises RefusedTable for a live file at an absolute path (a shallow clone)."""
    match root.task:
        case VersionFiles():
            return _state(storage, root.task)
        case CommitFiles():
            return Reach(files(_changed(storage, root.task)))
        case RemovedVersions():
            return Reach(removed(storage, root.task))
        case NamedByLog():
            return Reach(files(()), root.task.commits)
        case None:
            return Reach(files(()))


def doubts(storage: Storage, version: int, *, now_ms: int) -> tuple[Unproven, ...]:
    """What no other metadata confirms of a version's log. Raises CorruptMetadata for a log that contradicts itself."""
    return _state(storage, VersionFiles(version, now_ms, now_ms)).unproven


def live(storage: Storage, source: Source) -> Iterator[pa.RecordBatch]:
    """Batches of schema FILES of a part of a checkpoint, or of the files that a commit removed."""
    if isinstance(source, CommitRemovals):
        yield from removed_by(storage, source)
        return
    stored = partial(_stored, part=source, root=storage.root, shown_ms=written_ms(storage, source.name))
    if source.name.endswith(".json"):
        for actions in checkpoint_files(storage, source.name):
            yield from files(row for action in actions for row in stored(action)).to_batches()
        return
    gone = pa.array(sorted({path for path, _ in source.gone}), pa.string())
    for kind, column in checkpoint_columns(storage, source.name):
        plain = _plain(kind, column, gone)
        yield _plain_rows(column.filter(plain), needed=source.needed)
        others = bodies(source.name, kind, column.filter(pc.invert(plain)))
        yield from files(row for action in others for row in stored(action)).to_batches()


def _plain(kind: str, column: Datum, gone: Array) -> Array:
    """Which of the actions are adds of files under their own names, without a vector, that no later commit removed.
    The others are looked at one by one."""
    types = {field.name: field.type for field in column.type}
    if kind != "add" or types.get("path") != pa.string() or types.get("size") != pa.int64():
        nothing: Array = pc.and_(pc.is_valid(column), pa.scalar(value=False))
        return nothing
    path, size = pc.struct_field(column, "path"), pc.struct_field(column, "size")
    plain = pc.and_(pc.is_valid(column), pc.and_(pc.is_valid(path), pc.is_valid(size)))
    if "deletionVector" in types:
        plain = pc.and_(plain, pc.is_null(pc.struct_field(column, "deletionVector")))
    named = pc.fill_null(pc.or_(odd_paths(path), pc.is_in(path, gone)), fill_value=True)
    found: Array = pc.and_(plain, pc.invert(named))
    return found


def _plain_rows(adds: Datum, *, needed: bool) -> pa.RecordBatch:
    """Rows of schema FILES of such adds."""
    if not len(adds):
        return pa.RecordBatch.from_pylist([], schema=FILES)
    columns = [pc.struct_field(adds, "path"), pc.struct_field(adds, "size"), pa.repeat(pa.scalar(needed), len(adds))]
    return pa.RecordBatch.from_arrays(columns, schema=FILES)


def _versions(log_files: Listing, since_ms: int, now_ms: int) -> Iterator[Root[RootFiles]]:
    """Roots of the commits, oldest first. `version` is set if the version can still be read with all its files."""
    readable, roots = True, list[Root[RootFiles]]()
    if log_files.newest not in dict(log_files.commits):
        newest = VersionFiles(log_files.newest, since_ms, now_ms)
        roots.append(Root(f"version {log_files.newest} of a checkpoint", newest, log_files.newest))
    for version, stored in reversed(log_files.commits):
        change = CommitFiles(stored.name, stored.modified_ms, since_ms, now_ms)
        is_late = stored.modified_ms >= since_ms - SKEW_MS
        task = (
            VersionFiles(version, since_ms, now_ms, change)
            if version == log_files.newest
            else change
            if is_late
            else None
        )
        named = version if readable and version >= log_files.oldest else None
        roots.append(Root(f"version {version}: {stored.bytes} bytes at {stored.modified_ms}", task, named))
        readable = readable and stored.modified_ms >= since_ms
    return reversed(roots)


def _state(storage: Storage, task: VersionFiles) -> Reach[Source]:
    log_files = segment(storage, task.version)
    added: dict[FileKey, Raw] = {}
    gone: set[FileKey] = set()
    names = checkpoint_head(storage, log_files.checkpoint)[1] if log_files.checkpoint else ()
    proof = Proof.of(storage, log_files, names)
    for version, name in log_files.commits:
        commit = Commit(version, name)
        _apply(commit, commit_actions(storage, name), added, gone)
        proof.reached(commit, added.values(), gone)
    proof.require_removed()
    log = [(name, None, task.needed) for name in (*names, *(name for _, name in log_files.commits))]
    rows = [row for body in added.values() for row in _live_rows(body, storage.root, needed=task.needed)]
    changed = _changed(storage, task.change) if task.change else ()
    shared = frozenset(gone)
    parts = tuple(CheckpointPart(name, shared, task.since_ms, task.now_ms, task.needed) for name in names)
    return Reach(files([*log, *rows, *changed]), parts, tuple(proof.unproven), tuple(proof.contents))


def _apply(commit: Commit, actions: Iterator[Action], added: dict[FileKey, Raw], gone: set[FileKey]) -> None:
    """Apply a commit. Its removes come before its adds, whatever their order (replay.py)."""
    adds: dict[FileKey, Raw] = {}
    for kind, body in commit.watched(actions):
        key = (str(body["path"]), vector_id(body)) if kind in ("add", "remove") else ("", None)
        if kind == "add":
            adds[key] = {name: body[name] for name in ("path", "size", "deletionVector") if name in body}
        elif kind == "remove":
            if added.pop(key, None) is None:
                commit.removes_older(key, again=key in gone)
            gone.add(key)
    added |= adds


def _live_rows(body: Raw, root: str, *, needed: bool) -> Iterator[Row]:
    path = str(body["path"])
    # storage_name refuses files of a shallow clone that are elsewhere.
    yield storage_name(path, root), long_value(body, "size", subject=path), needed
    names = vector_names(body)
    yield from ((name, None, needed and len(names) == 1) for name in names)


def _changed(storage: Storage, task: CommitFiles) -> Iterator[Row]:
    removals = dated_removals(storage, task.name, modified_ms=task.modified_ms, now_ms=task.now_ms)
    for (_, body), at_ms in removals:
        if at_ms >= task.since_ms:
            yield from protected(body)


def protected(body: Raw) -> Iterator[Row]:
    """Files of a remove or cdc action. They need not exist: another VACUUM may have removed them."""
    yield from ((name, None, False) for name in (*data_names(str(body["path"])), *vector_names(body)))


def _stored(action: Action, part: CheckpointPart, root: str, *, shown_ms: int) -> Iterator[Row]:
    kind, body = action
    if kind == "remove":
        at_ms = left_removed_ms(body, written_ms=shown_ms, now_ms=part.now_ms)
        yield from protected(body) if at_ms >= part.since_ms else ()
    elif (str(body["path"]), vector_id(body)) not in part.gone:
        yield from _live_rows(body, root, needed=part.needed)
