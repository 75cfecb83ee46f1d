"""Commits -> files that they removed before the table's retention: candidates of a sweep, without a listing.

VacuumCommand.scala, getFilesFromDeltaLog (VACUUM LITE): removes with their vectors, and change files, of all commits
since the last vacuum. Unlike LITE, the point that was reached is not read from the table's folder, where anybody may
write it. A path outside of the table's folder is no candidate: only a path below it is certain to be the table's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

import pyarrow as pa

from nightkeep.formats.delta.deletes.vectors import vector_file
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.data_file import vector_of
from nightkeep.formats.delta.metadata.head import LogHead, head
from nightkeep.formats.delta.metadata.locations import own_name
from nightkeep.formats.delta.metadata.log_segment import Listing, listing
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.retention.action_files import BATCH, commit_actions, dated_removals, files
from nightkeep.formats.delta.retention.horizon import SKEW_MS, threshold_ms
from nightkeep.model import Address
from nightkeep.protocol.table_files import LogPoint, LogRemovals, Retention, Root
from nightkeep.storage import ListedFile, Storage


@dataclass(frozen=True, slots=True)
class CommitRemovals:
    """A commit that removed files, or that has change files."""

    name: str


@dataclass(frozen=True, slots=True)
class NamedByLog:
    """All of what these commits removed, and their change files, may go unless another root needs it."""

    commits: tuple[CommitRemovals, ...]


def gap(address: Address, storage: Storage, since: LogPoint | None) -> str | None:
    """Why the log does not name all files removed since the point, or since version 0; None if it does.

    Raises RefusedTable, MissingFile, CorruptMetadata.
    """
    log_files = listing(storage)
    versions = [version for version, _ in log_files.commits]
    start = 0 if since is None else since.version
    later = [version for version in versions if version >= start]
    if since is None and later[:1] != [0]:
        return "the log no longer has its first commits, and no earlier sweep is on record that goes on from here"
    if since is not None and _table_id(_newest(address, storage, log_files)) != since.table_id:
        return "the sweep on record was of another table in this place"
    if since is not None and digest(storage, since.version) != since.digest:
        return f"commit {since.version}, up to which the sweep on record went, is gone or another one by now"
    if later[-1] != log_files.newest or any(after != before + 1 for before, after in pairwise(later)):
        return f"commits after version {start} are missing from the log"
    return None


def removals(
    address: Address, storage: Storage, since: LogPoint | None, retention: Retention
) -> LogRemovals[NamedByLog]:
    """The files removed since the point, by commits up to the first one that removed a file too recently.

    Raises as `gap` does. A file that a version to keep shows was removed later than that version, and is not among
    them.
    """
    log_files = listing(storage)
    newest = _newest(address, storage, log_files)
    since_ms = threshold_ms(newest.metadata, retention.now_ms, retention.older_than_ms)
    start = 0 if since is None else since.version + 1
    commits, last = list[CommitRemovals](), None
    for version, stored in _kept_back(log_files, retention):
        if version < start:
            continue
        if stored.modified_ms >= since_ms:
            break
        dated = dated_removals(storage, stored.name, modified_ms=stored.modified_ms, now_ms=retention.now_ms)
        newest_ms = max((at_ms for _, at_ms in dated), default=None)
        if newest_ms is not None and newest_ms >= since_ms:
            break
        if newest_ms is not None:
            commits.append(CommitRemovals(stored.name))
        last = version
    if last is None:
        return LogRemovals((), since)
    root = Root(f"removed by versions {start} to {last}", NamedByLog(tuple(commits)))
    return LogRemovals((root,) if commits else (), _point(storage, newest, last))


def settled(address: Address, storage: Storage, retention: Retention) -> LogPoint | None:
    """The newest version such that no commit up to it removed a file that the table's retention still protects."""
    log_files = listing(storage)
    newest = _newest(address, storage, log_files)
    before_ms = threshold_ms(newest.metadata, retention.now_ms, retention.older_than_ms) - SKEW_MS
    old = takewhile(lambda commit: commit[1].modified_ms < before_ms, _kept_back(log_files, retention))
    versions = [version for version, _ in old]
    return _point(storage, newest, versions[-1]) if versions else None


def removed_by(storage: Storage, commit: CommitRemovals) -> Iterator[pa.RecordBatch]:
    """Batches of schema FILES. Raises CorruptMetadata for a path that names no file below the table's folder."""
    rows = list[tuple[str, int | None, bool]]()
    for kind, body in commit_actions(storage, commit.name):
        if kind in ("remove", "cdc"):
            rows += [(name, None, False) for name in _own_names(body, storage.root)]
        if len(rows) >= BATCH:
            yield from files(rows).to_batches()
            rows = []
    yield from files(rows).to_batches()


def _own_names(body: Raw, root: str) -> Iterator[str]:
    """The files of a remove or cdc action that are below the table's folder."""
    name = own_name(str(body["path"]), root)
    if name is not None:
        yield name
    vector = vector_of(body.get("deletionVector"))
    stored = None if vector is None else vector_file(vector)
    if stored is not None:
        yield stored


def _kept_back(log_files: Listing, retention: Retention) -> Iterator[tuple[int, ListedFile]]:
    """Commits oldest first, up to the first version to keep."""
    last = min([log_files.newest, *retention.keep])
    return takewhile(lambda commit: commit[0] <= last, iter(log_files.commits))


def _newest(address: Address, storage: Storage, log_files: Listing) -> LogHead:
    return head(storage, table=address.name, version=log_files.newest)


def _table_id(newest: LogHead) -> str:
    return str(newest.metadata.get("id"))


def _point(storage: Storage, newest: LogHead, version: int) -> LogPoint:
    return LogPoint(_table_id(newest), version, digest(storage, version) or "")
