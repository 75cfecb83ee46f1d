"""Log -> old files of a Delta table that may be removed, because the table's own retention no longer protects them.

PROTOCOL.md, "Delta Log Entries"; VacuumCommand.scala. No log file is removed here: the log has its own retention
(`upkeep`). Only data, change and vector files of old versions are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pyarrow as pa

from nightkeep.formats.delta.metadata.actions import Action
from nightkeep.formats.delta.metadata.checkpoints import checkpoint_head
from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.log_segment import Listing, listing, segment
from nightkeep.formats.delta.retention.action_files import (
    checkpoint_files,
    commit_actions,
    data_names,
    dated_removals,
    files,
    left_removed_ms,
    vector_names,
    written_ms,
)
from nightkeep.formats.delta.retention.horizon import threshold_ms
from nightkeep.model import Address
from nightkeep.model.counted import counted
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Root
from nightkeep.storage import ListedFile, Storage


@dataclass(frozen=True, slots=True)
class RemovedVersions:
    """Files removed before `before_ms` by commits up to version `through`, also those known only from a checkpoint."""

    newest: int
    through: int
    before_ms: int
    now_ms: int


def expiry(address: Address, storage: Storage, request: ExpireRequest) -> Expiry[RemovedVersions]:
    """The expiry, with one root of all files that may be removed. Raises RefusedTable, MissingFile, CorruptMetadata."""
    log_files = listing(storage)
    newest = head(storage, table=address.name, version=log_files.newest)
    last = () if request.retain_last is None else (log_files.newest - max(request.retain_last, 1) + 1,)
    through = min([log_files.newest, *request.keep, *last])
    before_ms = threshold_ms(newest.metadata, request.now_ms, request.older_than_ms or 0)
    task = RemovedVersions(log_files.newest, through, before_ms, request.now_ms)
    note = "files of the log go by the table's own retention of its log"
    root = Root(f"removed by version {through} and before {task.before_ms}", task)
    roots = (root,) if any(_expired(storage, task)) else ()
    losing = _losing(storage, task, log_files) if roots else frozenset()
    kept = (version for version in range(log_files.oldest, log_files.newest + 1) if version not in losing)
    reasons = tuple((f"version {version}", _reason(version, task, request)) for version in kept)
    return Expiry(roots, reasons, (note,), files_only=True)


def _reason(version: int, task: RemovedVersions, request: ExpireRequest) -> str:
    """Why no file of `version` is removed: the strongest reason."""
    if version == task.newest:
        return "the newest version"
    if version in request.keep:
        return "a run started from it that no check has judged"
    if request.retain_last is not None and version > task.newest - request.retain_last:
        return f"one of the last {request.retain_last} versions"
    if version > task.through:
        return f"later than version {task.through}, which stays"
    return f"no file of it was removed more than {_age(request.now_ms - task.before_ms)} ago"


def _age(age_ms: int) -> str:
    """`7 days`, `36 hours`, `0:20:00`."""
    days, rest = divmod(age_ms, DAY_MS)
    hours = age_ms / 3_600_000
    if not rest:
        return counted(days, "day")
    return counted(int(hours), "hour") if hours.is_integer() else str(timedelta(milliseconds=age_ms))


def _losing(storage: Storage, task: RemovedVersions, log_files: Listing) -> frozenset[int]:
    """Versions that show a file which may be removed, by the commits in the log.

    A version shows a file from the commit that added it, or from the log's start, until the commit that removed it. A
    file that a later version shows or removed is not removed.
    """
    candidates, staying = _by_removal(storage, task, log_files)
    born: dict[tuple[str, ...], int] = {}
    spans: list[tuple[tuple[str, ...], int, int]] = []
    for version, stored in log_files.commits:
        actions = (action for action in commit_actions(storage, stored.name) if action[0] in ("add", "remove"))
        # A commit that changes a file's vector removes the file and adds it again: removes come first.
        for action in sorted(actions, key=lambda action: action[0], reverse=True):
            names = _names(action)
            if not candidates.isdisjoint(names):
                if action[0] == "add":
                    born[names] = version
                else:
                    spans.append((names, born.pop(names, log_files.oldest), version))
    going = candidates - {name for names in born for name in names} - staying
    lost = (range(start, end) for names, start, end in spans if not going.isdisjoint(names))
    return frozenset(version for versions in lost for version in versions)


def _by_removal(storage: Storage, task: RemovedVersions, log_files: Listing) -> tuple[set[str], set[str]]:
    """Two sets of names: files whose removal has expired, and files removed too late or too recently."""
    expired, staying = set[str](), set[str]()
    for version, stored in log_files.commits:
        for action, ms in _dated(storage, stored, task):
            has_expired = version <= task.through and ms < task.before_ms
            (expired if has_expired else staying).update(_names(action))
    return expired, staying


def removed(storage: Storage, task: RemovedVersions) -> pa.Table:
    """The files that may be removed, unless a root that stays needs them."""
    names = {name for action in _expired(storage, task) for name in _names(action)}
    kept = {name for action in _later(storage, task) for name in _names(action)} if names else set()
    return files((name, None, False) for name in sorted(names - kept))


def _names(action: Action) -> tuple[str, ...]:
    _, body = action
    return (*data_names(str(body["path"])), *vector_names(body))


def _expired(storage: Storage, task: RemovedVersions) -> Iterator[Action]:
    """Expired removes and change files. A file that was added again is kept because the newest version needs it."""
    log_files = listing(storage)
    for version, stored in log_files.commits:
        # A commit made after the threshold removed nothing before it.
        if version <= task.through and stored.modified_ms < task.before_ms:
            yield from (a for a, ms in _dated(storage, stored, task) if ms < task.before_ms)
    yield from _of_checkpoint(storage, task, log_files)


def _later(storage: Storage, task: RemovedVersions) -> Iterator[Action]:
    """Removals by versions after `through`. Versions before those still need the files, however old the removal is."""
    for version, stored in listing(storage).commits:
        if version > task.through:
            yield from (action for action, _ in _dated(storage, stored, task))


def _of_checkpoint(storage: Storage, task: RemovedVersions, log_files: Listing) -> Iterator[Action]:
    """Expired tombstones of the newest checkpoint. They do not name the version that removed the file.

    So there are none if the checkpoint is newer than `through`.
    """
    start = segment(storage, task.newest).checkpoint
    if start is None or start.version > task.through:
        return
    for name in checkpoint_head(storage, start)[1]:
        shown_ms = written_ms(storage, name)
        left_ms = partial(left_removed_ms, written_ms=shown_ms, now_ms=task.now_ms)
        for batch in checkpoint_files(storage, name):
            yield from (a for a in batch if a[0] == "remove" and left_ms(a[1]) < task.before_ms)


def _dated(storage: Storage, commit: ListedFile, task: RemovedVersions) -> Iterator[tuple[Action, int]]:
    return dated_removals(storage, commit.name, modified_ms=commit.modified_ms, now_ms=task.now_ms)
