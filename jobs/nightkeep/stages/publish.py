"""Verified -> Committed | Conflicted. Every step validates against the newest version. In doubt no file is removed.

Publishing is one write that succeeds for one writer only: the next snapshot file (Paimon), the next log entry (Delta),
the catalog's exchange of the metadata pointer (Iceberg). All that it names is in the store before.

Invariant before the write: readers see what they saw, and nothing that they see names a staged file. After it: readers
see the change that the gate proved, for every unit that was committed, and each staged file is named or discarded.

A lost race is no failure. The candidate is staged anew on the newer version, and only where its staged bytes change
each unit exactly as was proven (`_require`). A unit whose inputs others have changed is dropped. What such a unit takes
with it is the plan's to state (`Plan.commit_scope`): rewrites that keep the rows are committed without it; a change of
rows is given up as a whole, so that readers see all of it or nothing, and its run can be repeated.

What a crash leaves, and who mends it:

- before the write: staged files that no version names. A sweep finds them as orphans.
- during the write, or if its answer is lost: perhaps a version. `Commits.visible` is asked. Without an answer the
  end is UnknownOutcome and no staged file is removed.
- after the write: a version that no document has yet. Its commit has the run's token, by which a retry of the run, or
  `check_group`, finds it, checks it and writes the document.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from nightkeep.errors import EvidenceError, MissingFile, UnknownOutcome
from nightkeep.model import (
    Candidate,
    CommitScope,
    Committed,
    Conflicted,
    Rewrite,
    Run,
    UnitKey,
    Verified,
    VersionIdentity,
)
from nightkeep.protocol import E, S, T, Table, U
from nightkeep.stages.base_version import another, replaced
from nightkeep.surprises import guarded

MAX_ATTEMPTS = 20
"""How many races in a row may be lost. Each one means that another writer committed in between."""

WHOLE = "; a change of rows is one commit or none"
"""Why a unit was not published that lost no race of its own."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The change of one unit: what readers no longer see, and what they see instead. All else is as in the parent."""

    removed: frozenset[Hashable]
    added: frozenset[Hashable]


@dataclass
class _Attempt(Generic[E]):
    """The candidate to commit now, its rewrites, what a lost unit takes with it, and the units dropped before.

    If `may_be_public`, the candidate may be visible, and none of its files may be removed.
    """

    candidate: Candidate
    rewrites: tuple[Rewrite[E], ...]
    scope: CommitScope
    dropped: tuple[tuple[UnitKey, str], ...] = ()
    may_be_public: bool = False

    def given_up(self, table: Table[S, U, T, E], reason: str) -> Conflicted:
        """Give up all remaining units and remove their files."""
        _discard(table, self.candidate, ())
        return Conflicted(self.dropped + _all(self.rewrites, reason))


def publish(
    table: Table[S, U, T, E], verified: Verified[object, E], run: Run, *, earlier: Collection[int] = ()
) -> Committed | Conflicted:
    """Commit the candidate. If others have committed meanwhile, it is first staged anew on their version.

    A unit whose inputs have changed is dropped, with all others if the plan's scope is the whole plan, and its staged
    files are removed. If the table no longer has the planned version, all units are dropped. `earlier` are versions
    that this attempt has already committed. Raises UnknownOutcome if a write failed and our commit may or may not
    exist.
    """
    attempt = _Attempt[E](verified.candidate, verified.rewrites, verified.plan.commit_scope)
    try:
        return _publish(table, verified, attempt, run=run, earlier=earlier)
    except EvidenceError as failure:
        # If the planned version is gone, the contradiction is no damage: the race is lost.
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
        # Look after the head was read: the versions below the head are fixed, and the commit checks the head again.
        gone = replaced(table, base)
        if gone is not None:
            return attempt.given_up(table, gone)
        lost = _taken(attempt, _lost(table, planned, head, attempt.rewrites, run=run, earlier=earlier))
        if lost or is_stale or head.identity != attempt.candidate.parent:
            rebased = _rebased(table, head, attempt, lost, run=run, proven=proven)
            if isinstance(rebased, Conflicted):
                return rebased
            is_stale = rebased is None
            identity = rebased or identity
        if not is_stale and _commit(table, attempt):
            return _committed(table, attempt, identity)
        # Stage anew even if the head is the same: another branch of the table may have taken the candidate's names.
        is_stale = True
    return attempt.given_up(table, f"lost {MAX_ATTEMPTS} races in a row")


def _rebased(
    table: Table[S, U, T, E],
    head: S,
    attempt: _Attempt[E],
    lost: Sequence[tuple[UnitKey, str]],
    *,
    run: Run,
    proven: Mapping[UnitKey, _Change],
) -> VersionIdentity | Conflicted | None:
    """Stage the attempt anew on `head`, without the lost units, and return its identity.

    Returns Conflicted if no unit is left, and None if `head` was replaced meanwhile. Raises EvidenceError if the new
    candidate is not the proven change.
    """
    attempt.dropped += tuple(lost)
    attempt.rewrites = _without(attempt.rewrites, lost)
    _discard(table, attempt.candidate, attempt.rewrites)
    if not attempt.rewrites:
        return Conflicted(attempt.dropped)
    before = attempt.candidate.units
    attempt.candidate = table.commits.stage(head, attempt.rewrites, run)
    if not attempt.candidate.units:
        return Conflicted(attempt.dropped + _all(attempt.rewrites, "others did it meanwhile"))
    left_out = [key for key in before if key not in attempt.candidate.units]
    if left_out and attempt.scope is CommitScope.WHOLE_PLAN:
        return attempt.given_up(table, f"others did meanwhile what was to be done in {left_out[0]}{WHOLE}")
    try:
        return _require(table, head, attempt.candidate, proven=proven)
    except EvidenceError:
        if replaced(table, head.identity) is None:
            raise
        return None


def _committed(table: Table[S, U, T, E], attempt: _Attempt[E], identity: VersionIdentity) -> Committed:
    done = attempt.candidate
    # The version is already published. If this cannot be looked up, the later check notices a replaced version.
    undermined = guarded(
        lambda: table.commits.undermined(done), lambda _: None, f"{table.address.name}, just published"
    )
    return Committed(
        identity, done.parent_version, done.units, attempt.dropped, parent=done.parent, undermined=undermined
    )


def _lost(
    table: Table[S, U, T, E], planned: S, head: S, rewrites: Sequence[Rewrite[E]], *, run: Run, earlier: Collection[int]
) -> tuple[tuple[UnitKey, str], ...]:
    # An attempt that the scheduler took for dead may still be alive. Only one attempt of a run may commit.
    rivals = [str(commit.version) for commit in table.commits.committed(run) if commit.version not in earlier]
    if rivals:
        return _all(rewrites, f"another attempt of this run committed version {', '.join(rivals)}")
    return table.commits.conflicts(planned, head, rewrites)


def _taken(attempt: _Attempt[E], lost: Sequence[tuple[UnitKey, str]]) -> tuple[tuple[UnitKey, str], ...]:
    """The units that are lost, with those that they take with them."""
    if not lost or attempt.scope is CommitScope.EACH_UNIT:
        return tuple(lost)
    first, reason = lost[0]
    own = dict(lost)
    return tuple((key, own.get(key, f"{reason}, in {first}{WHOLE}")) for key, _ in _all(attempt.rewrites, reason))


def _all(rewrites: Sequence[Rewrite[E]], reason: str) -> tuple[tuple[UnitKey, str], ...]:
    return tuple((key, reason) for key in dict.fromkeys(rewrite.key for rewrite in rewrites))


def _commit(table: Table[S, U, T, E], attempt: _Attempt[E]) -> bool:
    candidate = attempt.candidate
    attempt.may_be_public = True
    try:
        won = table.commits.commit(candidate)
    except MissingFile:
        # The staged commit disappeared before it was published, for example because the table was dropped.
        attempt.may_be_public = table.commits.visible(candidate)
        if attempt.may_be_public:
            return True
        raise
    except Exception as failure:
        # Whatever it is, it may have come after the one write that publishes.
        if _visible(table, candidate):
            return True
        if not isinstance(failure, OSError):
            raise
        raise UnknownOutcome(
            f"{table.address.name}: commit of version {candidate.version}", "an answer", str(failure)
        ) from failure
    # "Already exists" is not proof of losing: after a lost answer the version there may be our own.
    attempt.may_be_public = won or table.commits.visible(candidate)
    return attempt.may_be_public


def _visible(table: Table[S, U, T, E], candidate: Candidate) -> bool:
    """Whether the candidate is published. False also if that cannot be looked up."""
    return guarded(
        lambda: table.commits.visible(candidate), lambda _: False, f"{table.address.name}, perhaps published"
    )


def _require(
    table: Table[S, U, T, E], head: S, candidate: Candidate, *, proven: Mapping[UnitKey, _Change]
) -> VersionIdentity:
    """The candidate's identity. Raises EvidenceError unless its staged bytes change each unit exactly as was proven."""
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
    table.commits.discard([name for name in candidate.staged if name not in needed])
