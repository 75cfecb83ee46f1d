"""Verified -> Committed | Conflicted. Every step validates against the newest version; in doubt, nothing goes."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.errors import EvidenceError, UnknownOutcome
from nightkeep.model import Candidate, Committed, Conflicted, Rewrite, Run, UnitKey, Verified
from nightkeep.protocol import Snapshot, Table, U

MAX_ATTEMPTS = 20
"""Lost races in a row before giving up: each one means that another writer committed in between."""


def publish(table: Table[U], verified: Verified, run: Run) -> Committed | Conflicted:
    """Commit the candidate, rebased on whatever others committed meanwhile that does not touch its units.

    Units whose inputs changed are dropped, and their staged files removed. Raises UnknownOutcome when a write
    failed and our commit may or may not exist.
    """
    planned, proven = table.snapshot(verified.plan.version), table.staged(verified.candidate)
    candidate, rewrites = verified.candidate, verified.rewrites
    dropped: tuple[tuple[UnitKey, str], ...] = ()
    for _ in range(MAX_ATTEMPTS):
        head = table.snapshot()
        if head.version != candidate.parent_version:
            lost = table.conflicts(planned, head, rewrites)
            dropped += lost
            rewrites = _without(rewrites, lost)
            _discard(table, candidate, rewrites)
            if not rewrites:
                return Conflicted(dropped)
            candidate = _rebase(table, head, proven, rewrites, run=run)
        if _commit(table, candidate):
            return Committed(candidate.version, candidate.parent_version, candidate.units, dropped)
    _discard(table, candidate, ())
    return Conflicted(dropped + tuple((r.key, f"lost {MAX_ATTEMPTS} races in a row") for r in rewrites))


def _commit(table: Table[U], candidate: Candidate) -> bool:
    try:
        won = table.commit(candidate)
    except OSError as failure:
        if table.visible(candidate):
            return True
        raise UnknownOutcome(
            f"{table.address.name}: commit of version {candidate.version}", "an answer", str(failure)
        ) from failure
    # "Already exists" is not proof of losing: after a lost answer the version there may be our own.
    return won or table.visible(candidate)


def _rebase(
    table: Table[U], head: Snapshot[U], proven: Snapshot[U], rewrites: Sequence[Rewrite], *, run: Run
) -> Candidate:
    """The proven units on a newer parent: decoded from its own staged bytes, readers must see the same of them."""
    candidate = table.stage(head, rewrites, run)
    staged = table.staged(candidate)
    faults = table.faults(head, staged, candidate.units)
    before = {unit.key: table.shown(unit) for unit in proven.units}
    after = {unit.key: table.shown(unit) for unit in staged.units}
    faults += tuple(f"{key}: shows other files" for key in candidate.units if before[key] != after[key])
    if faults:
        subject = f"{table.address.name}: candidate version {candidate.version}"
        raise EvidenceError(subject, "the proven units on a newer parent", "; ".join(faults))
    return candidate


def _without(rewrites: Sequence[Rewrite], lost: Sequence[tuple[UnitKey, str]]) -> tuple[Rewrite, ...]:
    gone = {key for key, _ in lost}
    return tuple(rewrite for rewrite in rewrites if rewrite.key not in gone)


def _discard(table: Table[U], candidate: Candidate, kept: Sequence[Rewrite]) -> None:
    needed = {name for rewrite in kept for name in rewrite.outputs}
    table.discard([name for name in candidate.staged if name not in needed])
