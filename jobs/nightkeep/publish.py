"""Verified -> Committed | Conflicted. Every step validates against the newest version; in doubt, nothing goes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from nightkeep.errors import EvidenceError, MissingFile, UnknownOutcome
from nightkeep.model import Candidate, Committed, Conflicted, Rewrite, Run, UnitKey, Verified
from nightkeep.protocol import Snapshot, Table, U

MAX_ATTEMPTS = 20
"""Lost races in a row before giving up: each one means that another writer committed in between."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What of a unit readers stop to see, and what they see instead; the rest is as its parent has it."""

    removed: frozenset[Hashable]
    added: frozenset[Hashable]


def publish(table: Table[U], verified: Verified, run: Run, *, earlier: Collection[int] = ()) -> Committed | Conflicted:
    """Commit the candidate, rebased on whatever others committed meanwhile that does not touch its units.

    Units whose inputs changed are dropped, and their staged files removed. `earlier` are versions that this very
    attempt committed before. Raises UnknownOutcome when a write failed and our commit may or may not exist.
    """
    candidate, rewrites = verified.candidate, verified.rewrites
    try:
        staged = table.staged(candidate)
        planned = table.snapshot(verified.plan.version, read_as=staged)
    except MissingFile as expired:
        # Some formats read a staged version on top of the planned one. If that is there, what is missing is ours.
        if _is_there(table, verified.plan.version):
            raise
        _discard(table, candidate, ())
        return Conflicted(_all(rewrites, f"version {verified.plan.version} is gone: {expired}"))
    proven = _changes(table, planned, staged)
    dropped: tuple[tuple[UnitKey, str], ...] = ()
    is_stale = False
    for _ in range(MAX_ATTEMPTS):
        head = table.snapshot()
        lost = _lost(table, planned, head, rewrites, run=run, earlier=earlier)
        if lost or is_stale or head.version != candidate.parent_version:
            dropped += lost
            rewrites = _without(rewrites, lost)
            _discard(table, candidate, rewrites)
            if not rewrites:
                return Conflicted(dropped)
            candidate = table.stage(head, rewrites, run)
            if not candidate.units:
                return Conflicted(dropped + _all(rewrites, "others did it meanwhile"))
            _require(table, head, candidate, proven=proven)
        if _commit(table, candidate):
            return Committed(candidate.version, candidate.parent_version, candidate.units, dropped)
        # What others take need not be a version: another branch of the table may have the candidate's numbers.
        is_stale = True
    _discard(table, candidate, ())
    return Conflicted(dropped + _all(rewrites, f"lost {MAX_ATTEMPTS} races in a row"))


def _is_there(table: Table[U], version: int) -> bool:
    try:
        table.snapshot(version)
    except MissingFile:
        return False
    return True


def _lost(
    table: Table[U],
    planned: Snapshot[U],
    head: Snapshot[U],
    rewrites: Sequence[Rewrite],
    *,
    run: Run,
    earlier: Collection[int],
) -> tuple[tuple[UnitKey, str], ...]:
    # An attempt that its scheduler took for dead may have been alive: only one of a run's attempts commits.
    rivals = [str(each.version) for each in table.committed(run) if each.version not in earlier]
    if rivals:
        return _all(rewrites, f"another attempt of this run committed version {', '.join(rivals)}")
    return table.conflicts(planned, head, rewrites)


def _all(rewrites: Sequence[Rewrite], reason: str) -> tuple[tuple[UnitKey, str], ...]:
    return tuple((key, reason) for key in dict.fromkeys(rewrite.key for rewrite in rewrites))


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


def _require(table: Table[U], head: Snapshot[U], candidate: Candidate, *, proven: Mapping[UnitKey, _Change]) -> None:
    """Raise EvidenceError unless the candidate, from its own bytes, changes of each unit just what was proven."""
    staged = table.staged(candidate)
    found = _changes(table, head, staged)
    faults = table.faults(head, staged, candidate.units)
    faults += tuple(
        f"{key}: not the change that was proven" for key in candidate.units if found.get(key) != proven[key]
    )
    if faults:
        subject = f"{table.address.name}: candidate version {candidate.version}"
        raise EvidenceError(subject, "the proven changes on a newer parent", "; ".join(faults))


def _changes(table: Table[U], before: Snapshot[U], after: Snapshot[U]) -> Mapping[UnitKey, _Change]:
    old = {unit.key: table.shown(unit) for unit in before.units}
    new = {unit.key: table.shown(unit) for unit in after.units}
    return {key: _Change(removed=old[key] - new[key], added=new[key] - old[key]) for key in old.keys() & new.keys()}


def _without(rewrites: Sequence[Rewrite], lost: Sequence[tuple[UnitKey, str]]) -> tuple[Rewrite, ...]:
    gone = {key for key, _ in lost}
    return tuple(rewrite for rewrite in rewrites if rewrite.key not in gone)


def _discard(table: Table[U], candidate: Candidate, kept: Sequence[Rewrite]) -> None:
    needed = {name for rewrite in kept for name in rewrite.outputs}
    table.discard([name for name in candidate.staged if name not in needed])
