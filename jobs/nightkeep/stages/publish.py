"""Verified -> Committed | Conflicted. Every step validates against the newest version; in doubt, nothing goes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

from nightkeep.errors import EvidenceError, MissingFile, UnknownOutcome
from nightkeep.model import (
    Candidate,
    Committed,
    Conflicted,
    Rewrite,
    Run,
    UnitKey,
    Verified,
    VersionIdentity,
)  # fmt: skip
from nightkeep.protocol import E, S, T, Table, U
from nightkeep.stages.base_version import another, replaced

MAX_ATTEMPTS = 20
"""Lost races in a row before giving up: each one means that another writer committed in between."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What of a unit readers stop to see, and what they see instead; the rest is as its parent has it."""

    removed: frozenset[Hashable]
    added: frozenset[Hashable]


@dataclass
class _Attempt(Generic[E]):
    """What is to be committed now: the candidate, its rewrites, and the units that were dropped on the way.

    While `may_be_public`, the candidate may be visible, and nothing of it may go.
    """

    candidate: Candidate
    rewrites: tuple[Rewrite[E], ...]
    dropped: tuple[tuple[UnitKey, str], ...] = ()
    may_be_public: bool = False

    def given_up(self, table: Table[S, U, T, E], reason: str) -> Conflicted:
        """Every unit that is left is lost, and nothing of them stays."""
        _discard(table, self.candidate, ())
        return Conflicted(self.dropped + _all(self.rewrites, reason))


def publish(
    table: Table[S, U, T, E], verified: Verified[object, E], run: Run, *, earlier: Collection[int] = ()
) -> Committed | Conflicted:
    """Commit the candidate, rebased on whatever others committed meanwhile that does not touch its units.

    Units whose inputs changed are dropped, and their staged files removed; all of them where the table has another
    version in place of the planned one, or none. `earlier` are versions that this very attempt committed before.
    Raises UnknownOutcome when a write failed and our commit may or may not exist.
    """
    attempt = _Attempt[E](verified.candidate, verified.rewrites)
    try:
        return _publish(table, verified, attempt, run=run, earlier=earlier)
    except EvidenceError as failure:
        # What is read on top of a version that is gone contradicts itself.
        lost = None if attempt.may_be_public else replaced(table, verified.plan.base)
        if lost is None:
            raise
        return attempt.given_up(table, f"{lost}: {failure}")


def _publish(
    table: Table[S, U, T, E], verified: Verified[object, E], attempt: _Attempt[E], *, run: Run, earlier: Collection[int]
) -> Committed | Conflicted:
    base = verified.plan.base
    staged = table.staged(attempt.candidate)
    planned = table.snapshot(base.version, read_as=staged)
    changed = another(base, planned.identity)
    if changed is not None:
        return attempt.given_up(table, changed)
    proven, identity = _changes(table, planned, staged), staged.identity
    is_stale = False
    for _ in range(MAX_ATTEMPTS):
        head = table.snapshot()
        # After the head was read: what it is built on cannot change any more, and is looked at again as it commits.
        gone = replaced(table, base)
        if gone is not None:
            return attempt.given_up(table, gone)
        lost = _lost(table, planned, head, attempt.rewrites, run=run, earlier=earlier)
        if lost or is_stale or head.identity != attempt.candidate.parent:
            rebased = _rebased(table, head, attempt, lost, run=run, proven=proven)
            if isinstance(rebased, Conflicted):
                return rebased
            is_stale = rebased is None
            identity = rebased or identity
        if not is_stale and _commit(table, attempt):
            return _committed(table, attempt, identity)
        # What others take need not be a version: another branch of the table may have the candidate's numbers.
        is_stale = True
    return attempt.given_up(table, f"lost {MAX_ATTEMPTS} races in a row")


def _rebased(
    table: Table[S, U, T, E], head: S, attempt: _Attempt[E], lost: Sequence[tuple[UnitKey, str]], *,
    run: Run, proven: Mapping[UnitKey, _Change],
) -> VersionIdentity | Conflicted | None:  # fmt: skip
    """The attempt staged anew on `head`, without what was lost; Conflicted where nothing is left of it.

    None where it was read on top of another version than `head`, as that was replaced. Raises EvidenceError.
    """
    attempt.dropped += tuple(lost)
    attempt.rewrites = _without(attempt.rewrites, lost)
    _discard(table, attempt.candidate, attempt.rewrites)
    if not attempt.rewrites:
        return Conflicted(attempt.dropped)
    attempt.candidate = table.stage(head, attempt.rewrites, run)
    if not attempt.candidate.units:
        return Conflicted(attempt.dropped + _all(attempt.rewrites, "others did it meanwhile"))
    try:
        return _require(table, head, attempt.candidate, proven=proven)
    except EvidenceError:
        if replaced(table, head.identity) is None:
            raise
        return None


def _committed(table: Table[S, U, T, E], attempt: _Attempt[E], identity: VersionIdentity) -> Committed:
    done = attempt.candidate
    undermined = None
    # It is published whatever this look finds, or fails to: the check looks again.
    with suppress(EvidenceError, OSError):
        undermined = table.undermined(done)
    return Committed(
        identity, done.parent_version, done.units, attempt.dropped, parent=done.parent, undermined=undermined
    )


def _lost(
    table: Table[S, U, T, E],
    planned: S,
    head: S,
    rewrites: Sequence[Rewrite[E]],
    *,
    run: Run,
    earlier: Collection[int],
) -> tuple[tuple[UnitKey, str], ...]:
    # An attempt that its scheduler took for dead may have been alive: only one of a run's attempts commits.
    rivals = [str(each.version) for each in table.committed(run) if each.version not in earlier]
    if rivals:
        return _all(rewrites, f"another attempt of this run committed version {', '.join(rivals)}")
    return table.conflicts(planned, head, rewrites)


def _all(rewrites: Sequence[Rewrite[E]], reason: str) -> tuple[tuple[UnitKey, str], ...]:
    return tuple((key, reason) for key in dict.fromkeys(rewrite.key for rewrite in rewrites))


def _commit(table: Table[S, U, T, E], attempt: _Attempt[E]) -> bool:
    candidate = attempt.candidate
    attempt.may_be_public = True
    try:
        won = table.commit(candidate)
    except MissingFile:
        # The staged commit is gone before it could be published, as a table that is dropped takes it along.
        attempt.may_be_public = table.visible(candidate)
        if attempt.may_be_public:
            return True
        raise
    except OSError as failure:
        if table.visible(candidate):
            return True
        raise UnknownOutcome(
            f"{table.address.name}: commit of version {candidate.version}", "an answer", str(failure)
        ) from failure
    # "Already exists" is not proof of losing: after a lost answer the version there may be our own.
    attempt.may_be_public = won or table.visible(candidate)
    return attempt.may_be_public


def _require(
    table: Table[S, U, T, E], head: S, candidate: Candidate, *, proven: Mapping[UnitKey, _Change]
) -> VersionIdentity:
    """The candidate's identity. Raises EvidenceError unless it, from its own bytes, changes of each unit just what was
    proven."""
    staged = table.staged(candidate)
    changes = _changes(table, head, staged)
    faults = table.gate.faults(head, staged, candidate.units)
    faults += tuple(
        f"{key}: not the change that was proven" for key in candidate.units if changes.get(key) != proven[key]
    )
    if faults:
        subject = f"{table.address.name}: candidate version {candidate.version}"
        raise EvidenceError(subject, "the proven changes on a newer parent", "; ".join(faults))
    return staged.identity


def _changes(table: Table[S, U, T, E], before: S, after: S) -> Mapping[UnitKey, _Change]:
    old = {unit.key: table.gate.shown(unit) for unit in table.units(before)}
    new = {unit.key: table.gate.shown(unit) for unit in table.units(after)}
    return {key: _Change(removed=old[key] - new[key], added=new[key] - old[key]) for key in old.keys() & new.keys()}


def _without(rewrites: Sequence[Rewrite[E]], lost: Sequence[tuple[UnitKey, str]]) -> tuple[Rewrite[E], ...]:
    gone = {key for key, _ in lost}
    return tuple(rewrite for rewrite in rewrites if rewrite.key not in gone)


def _discard(table: Table[S, U, T, E], candidate: Candidate, kept: Sequence[Rewrite[E]]) -> None:
    needed = {name for rewrite in kept for name in rewrite.outputs}
    table.discard([name for name in candidate.staged if name not in needed])
