"""A log -> checkpoints that are due, and the files of expired versions, removed. PROTOCOL.md, "Metadata Cleanup".

Invariant before and after each step: every version from the oldest kept one on can be read, and `_last_checkpoint`
names no version before that one. The oldest kept version has a complete checkpoint, its own commit, and every commit
after it. Steps:

1. Checkpoints that are due are written (`checkpointing`).
2. The checkpoint that the oldest kept version is read from is read again and compared with the log before it.
3. `_last_checkpoint` is moved on if it names an older version.
4. Files before that version are removed: commits, oldest first; then checksums and compacted commits; then checkpoints,
   as `checkpointProtection` asks; last, sidecars that no checkpoint names.

A crash in step 4 leaves versions before the oldest kept one that some reader may still find, or files of theirs; the
next cleanup removes the rest. A failure stops it: no commit goes while an older one stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.commit.checkpoint import hinted_version, move_hint
from nightkeep.formats.delta.gate.checkpoint_audit import require_same_files
from nightkeep.formats.delta.metadata.checkpoints import SIDECARS, checkpoint_head
from nightkeep.formats.delta.metadata.features import supported
from nightkeep.formats.delta.metadata.head import LogHead, head
from nightkeep.formats.delta.metadata.log_segment import (
    Checkpoint,
    Listing,
    complete_checkpoints,
    listing,
    segment,
    segment_without,
)
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.retention.action_files import commit_actions, commit_ms
from nightkeep.formats.delta.retention.horizon import log_retention_ms, property_text
from nightkeep.formats.delta.upkeep.checkpointing import interval, is_due, write_checkpoint
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.log_upkeep import LogPlan, LogRequest, LogResult
from nightkeep.storage import ListedFile, Storage

_VERSIONED: Final = re.compile(
    r"([0-9]{20})\.(json|crc|checkpoint(?:\.[0-9]{10}\.[0-9]{10}|\.[0-9A-Za-z-]{36})?\.(?:parquet|json))"
)
_COMPACTED: Final = re.compile(r"([0-9]{20})\.[0-9]{20}\.compacted\.json")
_CHUNK: Final = 1000
"""Files that are removed together. Commits of one chunk may go in any order."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """`bound`: the newest version that the oldest kept one may be; None if nothing has expired. `cutoff_ms`: files of
    commits after this time stay."""

    bound: int | None
    cutoff_ms: int
    note: str | None = None


def plan_upkeep(table: Address, storage: Storage, request: LogRequest) -> LogPlan:
    """What is to be done about the log. Raises CorruptMetadata, MissingFile, RefusedTable as `head`."""
    newest = head(storage, table=table.name)
    try:
        newest.refuse_changes(table.name)
    except RefusedTable as refusal:
        return LogPlan(notes=(f"the log stays as it is: {refusal}",))
    log_files = listing(storage)
    due: tuple[int, ...] = (newest.version,) if is_due(segment(storage, newest.version), newest.metadata) else ()
    limits = _limits(storage, newest, log_files, request)
    notes = () if limits.note is None else (limits.note,)
    if limits.bound is None:
        return LogPlan(due, notes=notes)
    if (gap := _gap(log_files, limits.bound)) is not None:
        return LogPlan(due, notes=(*notes, f"commit {gap} is missing from the log: log files stay"))
    oldest = _oldest_kept(storage, log_files, limits.bound)
    start = log_files.oldest if oldest is None else oldest
    if limits.bound - start >= interval(newest.metadata) and _is_readable(storage, limits.bound):
        due, oldest = (limits.bound, *(version for version in due if version != limits.bound)), limits.bound
    if oldest is None:
        return LogPlan(due, notes=notes)
    if note := _protected(newest, oldest):
        kept = tuple(version for version in due if version == newest.version)
        return LogPlan(kept, notes=(*notes, note))
    return LogPlan(due, oldest, tuple(_expired(storage, oldest, limits.cutoff_ms)), notes)


def carry_out_upkeep(table: Address, storage: Storage, request: LogRequest, run: Run) -> LogResult:
    """Write what is due, then remove what has expired. Raises as `write_checkpoint` and `plan_upkeep`."""
    planned = plan_upkeep(table, storage, request)
    written: list[int] = []
    for version in planned.checkpoints:
        base = head(storage, table=table.name, version=version)
        if write_checkpoint(table, storage, base, run) is not None:
            written.append(version)
    plan = plan_upkeep(table, storage, request)
    if plan.oldest is None or not plan.files:
        return LogResult(tuple(written), notes=plan.notes)
    kept = _checkpoint_of(storage, plan.oldest)
    _read_again(storage, kept)
    _move_hint(storage, kept, run)
    removed, failed = _remove(storage, plan.files)
    return LogResult(tuple(written), plan.oldest, tuple(removed), failed, plan.notes)


def _limits(storage: Storage, newest: LogHead, log_files: Listing, request: LogRequest) -> _Limits:
    kept_ms = max(log_retention_ms(newest.metadata), request.older_than_ms or 0)
    # delta-spark and the protocol count whole days, so that a log is not cut at every commit.
    cutoff_ms = (request.now_ms - kept_ms) // DAY_MS * DAY_MS
    if not request.removes:
        return _Limits(None, cutoff_ms, "log files are only removed, never quarantined: they stay")
    if (property_text(newest.metadata, _CLEANUP) or "true").lower() != "true":
        return _Limits(None, cutoff_ms, f"{_CLEANUP} is false: log files stay")
    last = () if request.retain_last is None else (log_files.newest - max(request.retain_last, 1) + 1,)
    expired = _newest_expired(storage, log_files, cutoff_ms, now_ms=request.now_ms)
    if expired is None:
        return _Limits(None, cutoff_ms)
    return _Limits(max(min([expired, *request.keep, *last]), 0), cutoff_ms)


def _newest_expired(storage: Storage, log_files: Listing, cutoff_ms: int, *, now_ms: int) -> int | None:
    """The newest commit that is not newer than the cutoff, and no commit before it is. It stays: it was the newest
    version at that time. By the files' times and the commits' own, of which the later one counts."""
    old: list[tuple[int, ListedFile]] = []
    for version, stored in log_files.commits:
        if stored.modified_ms > cutoff_ms:
            break
        old.append((version, stored))
    for version, stored in reversed(old):
        infos = [action for action in commit_actions(storage, stored.name) if action[0] == "commitInfo"]
        if commit_ms(infos, stored.modified_ms, now_ms=now_ms) <= cutoff_ms:
            return version
    return None


def _gap(log_files: Listing, bound: int) -> int | None:
    """The first version from `bound` on without a commit in the log."""
    commits = {version for version, _ in log_files.commits}
    return next((version for version in range(bound, log_files.newest + 1) if version not in commits), None)


def _oldest_kept(storage: Storage, log_files: Listing, bound: int) -> int | None:
    """The newest version up to `bound` with a checkpoint, its own commit and all commits after it."""
    commits = {version for version, _ in log_files.commits}
    found = {checkpoint.version for checkpoint in complete_checkpoints(storage.list(LOG))}
    while bound >= 0 and bound in commits:
        if bound in found:
            return bound
        bound -= 1
    return None


def _is_readable(storage: Storage, version: int) -> bool:
    try:
        return segment(storage, version).own is not None
    except MissingFile:
        return False


def _protected(newest: LogHead, oldest: int) -> str | None:
    """Why the log stays although it has expired: checkpoints before a version may only go all at once."""
    if "checkpointProtection" not in supported(newest.protocol):
        return None
    text = property_text(newest.metadata, _PROTECTED) or "0"
    if not text.isascii() or not text.isdigit():
        raise CorruptMetadata(_PROTECTED, "a version", repr(text))
    if oldest >= int(text):
        return None
    return f"{_PROTECTED} is {text}: log files stay until all before that version can go at once"


def _expired(storage: Storage, oldest: int, cutoff_ms: int) -> Iterator[tuple[str, int]]:
    """Files of versions before `oldest`, in the order in which they go."""
    listed = storage.list(LOG)
    by_name = {stored.name.rpartition("/")[2]: stored for stored in listed}
    ranked: list[tuple[int, int, str]] = []
    for base in by_name:
        if match := _VERSIONED.fullmatch(base):
            rank = 0 if match[2] == "json" else 1 if match[2] == "crc" else 2
            ranked += [(rank, int(match[1]), base)] if int(match[1]) < oldest else []
        elif match := _COMPACTED.fullmatch(base):
            ranked += [(1, int(match[1]), base)] if int(match[1]) <= oldest else []
    # Hadoop's local file system keeps a checksum beside each file.
    for _, _, base in sorted(ranked):
        yield from ((stored.name, stored.bytes) for stored in (by_name[base], by_name.get(f".{base}.crc")) if stored)
    if any(rank == 2 for rank, _, _ in ranked):
        yield from _sidecars(storage, listed, oldest, cutoff_ms)


def _sidecars(storage: Storage, listed: Iterable[ListedFile], oldest: int, cutoff_ms: int) -> Iterator[tuple[str, int]]:
    """Sidecars that no checkpoint from `oldest` on names, and that are older than the cutoff: a checkpoint that is
    being written has younger ones."""
    needed: set[str] = set()
    for checkpoint in complete_checkpoints(listed):
        if checkpoint.version >= oldest:
            needed |= set(checkpoint_head(storage, checkpoint)[1])
    for stored in storage.list(SIDECARS):
        if stored.name.endswith(".parquet") and stored.name not in needed and stored.modified_ms < cutoff_ms:
            yield stored.name, stored.bytes


def _checkpoint_of(storage: Storage, version: int) -> Checkpoint:
    """The checkpoint that a reader of the version starts from. Raises MissingFile."""
    found = segment(storage, version).checkpoint
    if found is None or found.version != version:
        raise MissingFile(f"{LOG}: version {version}", "a complete checkpoint", "none any more")
    return found


def _read_again(storage: Storage, kept: Checkpoint) -> None:
    """Decode the checkpoint, and compare it with the log that it replaces. Raises EvidenceError.

    Where an earlier cleanup was interrupted, that log is no longer whole: the checkpoint is decoded all the same.
    """
    before = segment_without(storage, kept)
    require_same_files(storage, kept, before)


def _move_hint(storage: Storage, kept: Checkpoint, run: Run) -> None:
    """Readers that begin at a hint before the oldest kept version would find no log there."""
    hinted = hinted_version(storage)
    if hinted is not None and hinted >= kept.version:
        return
    rows = sum(_rows(storage, name) for name in checkpoint_head(storage, kept)[1])
    parts = {"parts": len(kept.names)} if len(kept.names) > 1 else {}
    move_hint(storage, {"version": kept.version, "size": rows, **parts}, run)


def _rows(storage: Storage, name: str) -> int:
    if name.endswith(".json"):
        return sum(1 for line in storage.read(name).split(b"\n") if line.strip())
    with storage.open(name) as source, pq.ParquetFile(source) as file:
        return int(file.metadata.num_rows)


def _remove(
    storage: Storage, files: Sequence[tuple[str, int]]
) -> tuple[list[tuple[str, int]], tuple[tuple[str, str], ...]]:
    removed: list[tuple[str, int]] = []
    for start in range(0, len(files), _CHUNK):
        some = files[start : start + _CHUNK]
        failed = storage.delete_all([name for name, _ in some])
        left = {name for name, _ in failed}
        removed += [each for each in some if each[0] not in left]
        if failed:
            return removed, failed
    return removed, ()


_CLEANUP: Final = "delta.enableExpiredLogCleanup"
_PROTECTED: Final = "delta.requireCheckpointProtectionBeforeVersion"
