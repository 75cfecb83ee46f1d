"""The mark of the last audit and the table of now -> the commits to judge, and versions that have vanished since.

A version that was the newest once must be one that today's is built on, or have expired. Where it is neither, a
rollback took it, which metadata may record, or another writer committed on top of a version that was not the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.admission.order import AuditOptions
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol import OpenTable, Snapshot, Unit
from nightkeep.protocol.past import Past, PastCommit, PastReading
from nightkeep.records.audit_marks import AuditedCommit, AuditMark

FIRST_MS: Final = 7 * DAY_MS
"""How far back a first audit goes."""


@dataclass(frozen=True, slots=True)
class VanishedVersion:
    """A version that an earlier audit judged and that the newest is not built on. `rolled_back`: metadata records that
    somebody went back to an earlier version."""

    commit: AuditedCommit
    rolled_back: bool

    def __str__(self) -> str:
        held = "" if self.commit.rows is None else f", which stated {self.commit.rows:,} more rows,"
        how = "was rolled back, as metadata records" if self.rolled_back else "is gone, and no rollback is recorded"
        return f"version {self.commit.version}, {self.commit.kind} by {self.commit.author},{held} {how}"


@dataclass(frozen=True, slots=True)
class AuditRange:
    """The commits to judge, oldest first. `cut`: why some that were asked for are gone, None if none are."""

    commits: tuple[PastCommit, ...]
    vanished: tuple[VanishedVersion, ...] = ()
    cut: str | None = None


def audit_range(
    table: OpenTable, past: PastReading[Snapshot, Unit], asked: AuditOptions, mark: AuditMark | None, *, now_ms: int
) -> AuditRange:
    """What an audit has to judge. Raises EvidenceError for metadata that cannot be read."""
    if asked.since is not None or asked.since_ms is not None:
        since_ms = None if asked.since_ms is None else now_ms - asked.since_ms
        return _range(past.read(since=asked.since, since_ms=since_ms), asked.since, since_ms)
    if mark is None:
        return _range(past.read(since=None, since_ms=now_ms - FIRST_MS), None, now_ms - FIRST_MS)
    known, gone = _standing(table, mark.commits)
    if known is not None and not gone:
        return _range(past.read(since=known.version, since_ms=None), known.version, None)
    since_ms = mark.commits[0].time_ms
    read = past.read(since=None if known is None else known.version, since_ms=since_ms if known is None else None)
    vanished = _vanished(past, read, gone, stands=known is not None)
    found = _range(read, None if known is None else known.version, since_ms if known is None else None)
    return AuditRange(found.commits, vanished, found.cut)


def _range(past: Past, since: int | None, since_ms: int | None) -> AuditRange:
    """The newest commit is read in any case, and is left out where it was not asked for."""
    commits = past.commits
    if commits and commits[0].version == since:
        commits = commits[1:]
    if since_ms is not None:
        commits = tuple(commit for commit in commits if commit.time_ms >= since_ms)
    return AuditRange(commits, cut=past.cut)


def _standing(
    table: OpenTable, judged: Sequence[AuditedCommit]
) -> tuple[AuditedCommit | None, tuple[AuditedCommit, ...]]:
    """The newest judged commit that the table's newest version is built on, and the later ones, oldest first."""
    gone: list[AuditedCommit] = []
    for commit in reversed(judged):
        if table.digest(commit.version) in (commit.digest, ""):
            return commit, tuple(reversed(gone))
        gone.append(commit)
    return None, tuple(reversed(gone))


def _vanished(
    past: PastReading[Snapshot, Unit], read: Past, gone: Sequence[AuditedCommit], *, stands: bool
) -> tuple[VanishedVersion, ...]:
    """Those that have not expired: an older or equally old commit is still there. `stands`: one that was judged."""
    undone = {commit.version for commit in read.undone}
    oldest = min((commit.time_ms for commit in read.commits), default=0)
    is_whole = stands or (bool(read.commits) and read.commits[0].parent is None)
    return tuple(
        VanishedVersion(commit, commit.version in undone or past.went_back(commit.version))
        for commit in gone
        if is_whole or commit.time_ms >= oldest
    )
