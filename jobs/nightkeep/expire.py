"""A table -> old versions let go, and what only they reached removed. In doubt a file stays, and a sweep finds it.

What the versions reach is read before anything changes. Then they are made unreachable; then everything that what
remains needs is read, until another look finds nothing new; the difference goes. A death anywhere leaves a table whose
every remaining version can be read, and files that nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import EvidenceError
from nightkeep.model import Outcome, Run
from nightkeep.sweep.look import Look, still_orphans
from nightkeep.sweep.order import Acted, Mode
from nightkeep.sweep.removal import remove
from nightkeep.sweep.sets import Counted, Sets
from nightkeep.territory import Announces, ExpireRequest, Expires, Expiry, Retention

_TRIES: Final = 3
"""Plans made, where another writer was first each time: as often as a commit is tried."""
_LOOKS: Final = 20


NOTHING: Final = Acted()


@dataclass(frozen=True, slots=True)
class ExpireOrder:
    """What to let go. `retention` is what is asked of roots that remain."""

    mode: Mode
    request: ExpireRequest
    retention: Retention


@dataclass(frozen=True, slots=True)
class Expired:
    """How an expiry ended. `counted` is None where no version could go."""

    outcome: Outcome
    reason: str | None
    expiry: Expiry
    counted: Counted | None = None
    acted: Acted = NOTHING


def expire(
    table: Expires, order: ExpireOrder, run: Run, *, sets: Callable[[], Sets], before: Callable[[Expiry], None]
) -> Expired:
    """Let versions go. `sets` are opened once per try, and closed by the caller, to whom the last ones stay readable.

    `before` is called in each try that finds versions to let go, and may raise to keep them. Raises EvidenceError where
    metadata cannot be read, RefusedTable; files stay then.
    """
    for _ in range(_TRIES):
        expiry, looked = table.expiry(order.request), sets()
        if not expiry.roots:
            return Expired(Outcome.UNCHANGED, "no version may go", expiry)
        looked.reached(table, expiry.roots)
        if order.mode is Mode.DRY_RUN:
            return _told(table, expiry, order, looked)
        before(expiry)
        if table.forget(expiry, run):
            return _removed(table, expiry, order, run=run, sets=looked)
    return Expired(Outcome.CONFLICTED, f"another writer was first in each of {_TRIES} tries; nothing changed", expiry)


def _told(table: Expires, expiry: Expiry, order: ExpireOrder, sets: Sets) -> Expired:
    going = {root.id for root in expiry.roots}
    remaining = [root for root in table.roots(order.retention) if root.id not in going]
    sets.live(table, remaining, expected=False)
    counted = sets.settle(cutoff_ms=None)
    reason = (
        f"dry run: {len(expiry.roots):,} versions and {counted.orphans.files:,} files would go, nothing was changed"
    )
    return Expired(Outcome.SKIPPED, reason, expiry, counted)


def _removed(table: Expires, expiry: Expiry, order: ExpireOrder, *, run: Run, sets: Sets) -> Expired:
    territory, look = table.territory(), Look(table, order.retention, sets)
    _read_what_remains(look, territory.table.name)
    counted = sets.settle(cutoff_ms=None)
    going = still_orphans(look, sets, lambda: sets.settle(cutoff_ms=None))
    acted = remove(
        territory, going, run, mode=order.mode, total=counted.orphans,
        older_than_ms=order.retention.older_than_ms, announce=table if isinstance(table, Announces) else None,
    )  # fmt: skip
    if acted.failed:
        name, why = acted.failed[0]
        reason = f"{len(acted.failed):,} of {counted.orphans.files:,} files could not be removed, such as {name}: {why}"
        return Expired(Outcome.FAILED, f"{reason}; the next sweep finds them", expiry, counted, acted)
    return Expired(Outcome.VERIFIED, None, expiry, counted, acted)


def _read_what_remains(look: Look, name: str) -> None:
    for _ in range(_LOOKS):
        if not look.catch_up():
            return
    raise EvidenceError(f"{name}: roots", "none that are new in one look", f"new ones in {_LOOKS} looks")
