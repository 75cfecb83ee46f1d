"""A table -> old versions let go, and what only they reached removed. In doubt a file stays, and a sweep finds it.

What the versions reach is read before anything changes. Then they are made unreachable; then everything that what
remains needs is read, until another look finds nothing new; the difference goes. A death anywhere leaves a table whose
every remaining version can be read, and files that nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from nightkeep.model import Outcome, Run
from nightkeep.protocol.table_files import Announces, ExpireRequest, Expires, Expiry, Retention, refuse_changes
from nightkeep.retention.orphans.guards import check_spelling, clocks_apart, not_proven, store_ahead_ms
from nightkeep.retention.orphans.lease import Clock, wall_ms
from nightkeep.retention.orphans.look import FileSurvey, still_orphans
from nightkeep.retention.orphans.removal import remove
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.orphans.shared_locations import VouchedTable
from nightkeep.retention.orphans.sweep_request import FilesRemoved, SweepMode

_TRIES: Final = 3
"""Plans made, where another writer was first each time: as often as a commit is tried."""


NOTHING: Final = FilesRemoved()


@dataclass(frozen=True, slots=True)
class ExpireOrder:
    """What to let go. `retention` is what is asked of roots that remain; `outside` as of a SweepOrder."""

    mode: SweepMode
    request: ExpireRequest
    retention: Retention
    outside: bool = False

    def moved(self, milliseconds: int) -> ExpireOrder:
        """The same as if it were so much later."""
        now_ms = self.request.now_ms + milliseconds
        request, retention = replace(self.request, now_ms=now_ms), replace(self.retention, now_ms=now_ms)
        return replace(self, request=request, retention=retention)


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """How an expiry ended. `counted` is None where no version could go."""

    outcome: Outcome
    reason: str | None
    expiry: Expiry
    counted: SetCounts | None = None
    acted: FilesRemoved = NOTHING


def expire_versions(
    table: Expires, order: ExpireOrder, run: Run, *,
    sets: Callable[[], Sets], before: Callable[[Expiry], None], removing: Callable[[SetCounts], None] = lambda _: None,
    clock: Clock = wall_ms,
) -> ExpiryResult:  # fmt: skip
    """Let versions go. `sets` are opened once per try, and closed by the caller, to whom the last ones stay readable.

    `before` is called in each try that finds versions to let go, and may raise to keep them; `removing` once they went,
    before the first file does. Where nothing but files would go, neither is called unless there are some.

    Refused where the store's clock and ours are far apart; where the store's is behind, it is the one that counts.
    Raises EvidenceError where metadata cannot be read, RefusedTable; files stay then.
    """
    ahead_ms = 0 if order.mode is SweepMode.DRY_RUN else _ahead_ms(table, run, clock)
    if reason := clocks_apart(ahead_ms):
        return ExpiryResult(Outcome.REFUSED, reason, Expiry(()))
    # Ages would be told too high, and what is committed as of now would be ahead of other writers: Iceberg's Java
    # (TableMetadata.java) refuses a table that was last updated more than a minute after what it says is now.
    order, run = order.moved(min(ahead_ms, 0)), replace(run, now_ms=run.now_ms + min(ahead_ms, 0))
    for _ in range(_TRIES):
        expiry, looked = table.expiry(order.request), sets()
        if not expiry.roots:
            return ExpiryResult(Outcome.UNCHANGED, "no version may go", expiry)
        looked.reached(VouchedTable(table, outside=order.outside), expiry.roots)
        look = FileSurvey(table, order.retention, looked)
        if expiry.files_only and not _files(look, looked):
            return ExpiryResult(Outcome.UNCHANGED, "no file may go", expiry)
        if order.mode is SweepMode.DRY_RUN:
            return _told(table, expiry, order, look=look, sets=looked)
        if reason := _without_evidence(table, expiry, order, looked):
            return ExpiryResult(Outcome.REFUSED, reason, expiry)
        before(expiry)
        if table.forget(expiry, run):
            return _removed(table, expiry, order, run=run, look=look, sets=looked, removing=removing)
    return ExpiryResult(
        Outcome.CONFLICTED, f"another writer was first in each of {_TRIES} tries; nothing changed", expiry
    )


def _ahead_ms(table: Expires, run: Run, clock: Clock) -> int:
    territory = table.territory()
    # To ask the store for its time is to write to it.
    refuse_changes(territory)
    return store_ahead_ms(territory, run, clock)


def _files(look: FileSurvey, sets: Sets) -> int:
    """How many of the files that were reached nothing else needs, as far as can be told now."""
    look.read()
    return sets.settle(cutoff_ms=None).orphans.files


def _without_evidence(table: Expires, expiry: Expiry, order: ExpireOrder, sets: Sets) -> str | None:
    """Why no version may go: their files could be what lists of those that remain would name, were they whole.

    Files alone go because they are said to be removed, not because nothing names them. Raises EvidenceError where
    lists contradict what is told of them, before anything changed.
    """
    if expiry.files_only:
        return None
    _read_remaining(table, expiry, order, sets)
    return not_proven(sets.settle(cutoff_ms=None), order.mode)


def _read_remaining(table: Expires, expiry: Expiry, order: ExpireOrder, sets: Sets) -> None:
    going = {root.id for root in expiry.roots}
    remaining = [root for root in table.roots(order.retention) if root.id not in going]
    sets.live(table, remaining, expected=False)


def _told(table: Expires, expiry: Expiry, order: ExpireOrder, *, look: FileSurvey, sets: Sets) -> ExpiryResult:
    _read_remaining(table, expiry, order, sets)
    counted = sets.settle(cutoff_ms=None)
    check_spelling(counted, look.table)
    reason = (
        f"dry run: {len(expiry.roots):,} versions and {counted.orphans.files:,} files would go, nothing was changed"
    )
    return ExpiryResult(Outcome.SKIPPED, reason, expiry, counted)


def _removed(
    table: Expires, expiry: Expiry, order: ExpireOrder, *,
    run: Run, look: FileSurvey, sets: Sets, removing: Callable[[SetCounts], None],
) -> ExpiryResult:  # fmt: skip
    territory = table.territory()
    look.read()
    counted = sets.settle(cutoff_ms=None)
    check_spelling(counted, look.table)
    if counted.orphans.files:
        removing(counted)
    # What the log says was removed may go without the evidence that what nothing names needs.
    asked = SweepMode.QUARANTINE if expiry.files_only else order.mode
    going = still_orphans(look, sets, lambda: sets.settle(cutoff_ms=None), asked)
    acted = remove(
        territory, going, run, mode=order.mode, total=counted.orphans,
        older_than_ms=order.request.older_than_ms, announce=table if isinstance(table, Announces) else None,
    )  # fmt: skip
    if acted.failed:
        name, why = acted.failed[0]
        reason = f"{len(acted.failed):,} of {counted.orphans.files:,} files could not be removed, such as {name}: {why}"
        return ExpiryResult(Outcome.FAILED, f"{reason}; the next sweep finds them", expiry, counted, acted)
    return ExpiryResult(Outcome.VERIFIED, None, expiry, counted, acted)
