"""A table -> old versions, and files that only they need, removed. In doubt a file stays until a sweep finds it.

First the files of the old versions are listed. Then a commit removes those versions. Then the files of the remaining
versions are read until no new version appears. The difference is removed. If the process dies at any point, every
remaining version can be read, and only orphan files are left over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import (
    ExpireRequest,
    Expiry,
    OpenExpiry,
    OpenFiles,
    Retention,
    TableFiles,
    refuse_changes,
)
from nightkeep.retention.orphans.classify import vouched
from nightkeep.retention.orphans.guards import check_spelling, clocks_apart, not_proven, store_ahead_ms
from nightkeep.retention.orphans.lease import Clock, wall_ms
from nightkeep.retention.orphans.removal import remove
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.orphans.survey import FileSurvey, still_orphans
from nightkeep.retention.orphans.sweep_request import FilesRemoved

_TRIES: Final = 3
"""How often an expiry is planned anew when another writer commits first; the same as the tries of a commit."""


NOTHING: Final = FilesRemoved()


@dataclass(frozen=True, slots=True)
class ExpireOrder:
    """What to expire. `retention` selects the roots that remain; `outside` is as in SweepOrder."""

    mode: SweepMode
    request: ExpireRequest
    retention: Retention
    outside: bool = False

    def moved(self, milliseconds: int) -> ExpireOrder:
        """The same order, with its time moved forward by `milliseconds`."""
        now_ms = self.request.now_ms + milliseconds
        request, retention = replace(self.request, now_ms=now_ms), replace(self.retention, now_ms=now_ms)
        return replace(self, request=request, retention=retention)


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """How an expiry ended. `counted` is None if no version could be removed."""

    outcome: Outcome
    reason: str | None
    expiry: OpenExpiry
    counted: SetCounts | None = None
    acted: FilesRemoved = NOTHING


def expire_versions(
    table: OpenFiles,
    order: ExpireOrder,
    run: Run,
    *,
    sets: Callable[[], Sets],
    before: Callable[[OpenExpiry], None],
    removing: Callable[[SetCounts], None] = lambda _: None,
    clock: Clock = wall_ms,
) -> ExpiryResult:
    """Expire versions. `sets` is called once per try; the caller closes what it returns and may read the last one.

    `before` is called in each try that finds versions to expire; it may raise to keep them. `removing` is called after
    the versions are removed and before the first file is. If only files would be removed, neither is called unless
    there are such files.

    The outcome is `refused` if the store's clock and ours are far apart. If the store's clock is behind, its time
    counts. Raises EvidenceError for metadata that cannot be read, and RefusedTable; no file is removed then.
    """
    ahead_ms = 0 if order.mode is SweepMode.DRY_RUN else _ahead_ms(table, run, clock)
    if reason := clocks_apart(ahead_ms):
        return ExpiryResult(Outcome.REFUSED, reason, Expiry(()))
    # With our clock, ages would be too high and our commit would have a time ahead of other writers. Iceberg's Java
    # (TableMetadata.java) refuses a table whose last update is more than a minute after its own clock.
    order, run = order.moved(min(ahead_ms, 0)), replace(run, now_ms=run.now_ms + min(ahead_ms, 0))
    for _ in range(_TRIES):
        expiry, file_sets = table.expiry(order.request), sets()
        if not expiry.roots:
            return ExpiryResult(Outcome.UNCHANGED, "no version may go", expiry)
        file_sets.reached(_vouched_table(table, outside=order.outside), expiry.roots)
        survey = FileSurvey(table, order.retention, file_sets)
        if expiry.files_only and not _files(survey, file_sets):
            return ExpiryResult(Outcome.UNCHANGED, "no file may go", expiry)
        if order.mode is SweepMode.DRY_RUN:
            return _listed(table, expiry, order, survey=survey, sets=file_sets)
        if reason := _without_evidence(table, expiry, order, file_sets):
            return ExpiryResult(Outcome.REFUSED, reason, expiry)
        before(expiry)
        if expiry.forget(run):
            return _removed(table, expiry, order, run=run, survey=survey, sets=file_sets, removing=removing)
    return ExpiryResult(
        Outcome.CONFLICTED, f"another writer was first in each of {_TRIES} tries; nothing changed", expiry
    )


def _ahead_ms(table: OpenFiles, run: Run, clock: Clock) -> int:
    table_files = table.table_files()
    # Asking the store for its time writes a file.
    refuse_changes(table_files)
    return store_ahead_ms(table_files, run, clock)


def _files(survey: FileSurvey, sets: Sets) -> int:
    """How many of the files that were reached no remaining version needs at present."""
    survey.read()
    return sets.settle(cutoff_ms=None).orphans.files


def _without_evidence(table: OpenFiles, expiry: OpenExpiry, order: ExpireOrder, sets: Sets) -> str | None:
    """Why no version may be removed: lists of the remaining versions may be incomplete, and these files missing there.

    An expiry of files alone needs no such evidence: it removes files that the log marks as removed. Raises
    EvidenceError if lists contradict their own metadata; nothing has changed then.
    """
    if expiry.files_only:
        return None
    _read_remaining(table, expiry, order, sets)
    return not_proven(sets.settle(cutoff_ms=None), order.mode)


def _read_remaining(table: OpenFiles, expiry: OpenExpiry, order: ExpireOrder, sets: Sets) -> None:
    going = {root.id for root in expiry.roots}
    versions = frozenset(root.version for root in expiry.roots if root.version is not None)
    # The current metadata still names files of the versions that go, such as their statistics.
    retention = replace(order.retention, going=versions)
    remaining = [root for root in table.roots(retention) if root.id not in going]
    sets.live(table, remaining, expected=False)


def _listed(
    table: OpenFiles, expiry: OpenExpiry, order: ExpireOrder, *, survey: FileSurvey, sets: Sets
) -> ExpiryResult:
    _read_remaining(table, expiry, order, sets)
    counted = sets.settle(cutoff_ms=None)
    check_spelling(counted, survey.table)
    reason = (
        f"dry run: {len(expiry.roots):,} versions and {counted.orphans.files:,} files would go, nothing was changed"
    )
    return ExpiryResult(Outcome.SKIPPED, reason, expiry, counted)


def _removed(
    table: OpenFiles,
    expiry: OpenExpiry,
    order: ExpireOrder,
    *,
    run: Run,
    survey: FileSurvey,
    sets: Sets,
    removing: Callable[[SetCounts], None],
) -> ExpiryResult:
    table_files = table.table_files()
    survey.read()
    counted = sets.settle(cutoff_ms=None)
    check_spelling(counted, survey.table)
    if counted.orphans.files:
        removing(counted)
    # Files that the log marks as removed need no evidence that every live file is named.
    asked = SweepMode.QUARANTINE if expiry.files_only else order.mode
    going = still_orphans(survey, sets, lambda: sets.settle(cutoff_ms=None), asked)
    acted = remove(
        table_files,
        going,
        run,
        mode=order.mode,
        total=counted.orphans,
        older_than_ms=order.request.older_than_ms,
        entries=table.removals,
    )
    if acted.failed:
        name, why = acted.failed[0]
        reason = f"{len(acted.failed):,} of {counted.orphans.files:,} files could not be removed, such as {name}: {why}"
        return ExpiryResult(Outcome.FAILED, f"{reason}; the next sweep finds them", expiry, counted, acted)
    return ExpiryResult(Outcome.VERIFIED, None, expiry, counted, acted)


def _vouched_table(table: OpenFiles, *, outside: bool) -> OpenFiles:
    """The table without its shared places, unless the caller vouches for those `outside`."""
    return replace(table, table_files=partial(_vouched, table.table_files, outside=outside))


def _vouched(table_files: Callable[[], TableFiles], *, outside: bool) -> TableFiles:
    return vouched(table_files(), outside=outside)
