"""Candidate -> Verified | Mismatch | Conflicted. Reads staged bytes, never what the rewrite reported.

The gate decides whether a candidate may be published. For each touched unit it reads two sides from the store: the
planned version merged on read, with the change of rows that the plan asks for, and the candidate as its readers will
see it. Both are multisets of rows; a side is a row count and two sums of 64-bit row hashes. The candidate is proven if
the sides are equal and no audit of its metadata has found a fault: a reader may show other rows than the files hold
where levels, sequence numbers, statistics or vectors are wrong.

Invariant: a Verified candidate shows readers of each unit the rows of the planned version, changed as planned and in
nothing else. It is known by its content (`identity`), so that nothing else can be published in its name. Units that
were not touched are proven by their metadata alone, which must be that of the parent.

The gate writes nothing, so a crash leaves what the rewrite has left: staged files that no version names. A Mismatch is
never published, and its files are removed. If another version has meanwhile taken the planned one's number, the end is
Conflicted: the evidence was about a version that is gone.

The gate decodes metadata and vectors with the same code as a rewrite, and flat columns with another decoder. The
architecture test lists what else both share, with the reason: the hash of rows, bitmaps, and the parser of conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import add
from typing import Generic

import pyarrow as pa

from nightkeep.errors import EvidenceError
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import (
    Candidate,
    Conflicted,
    Fingerprint,
    Mismatch,
    Plan,
    Rewrite,
    TaskCost,
    UnitKey,
    UnitProof,
    Verified,
    VerifyLevel,
    View,
)
from nightkeep.protocol import E, Gate, OpenWide, Positions, S, Snapshot, T, Table, U
from nightkeep.protocol.hashed_rows import fingerprint
from nightkeep.protocol.positions import compare_positions
from nightkeep.sql_text.rows.expression import UnfitValueError
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.sql_text.rows.parse_assignments import assignments
from nightkeep.sql_text.rows.polars_condition import matching, staying
from nightkeep.sql_text.rows.polars_expression import expected_rows
from nightkeep.stages.base_version import another
from nightkeep.tasks import CostMeter, Mapper


def verify(
    table: Table[S, U, T, E],
    plan: Plan[T | OpenWide],
    rewrites: Sequence[Rewrite[E]],
    candidate: Candidate,
    *,
    level: VerifyLevel,
    mapper: Mapper,
    task_bytes: int | None = None,
) -> Verified[T | OpenWide, E] | Mismatch | Conflicted:
    """Prove every touched unit of the candidate against the planned version, both read from storage.

    Base: the planned version, merged on read, with the plan's deletes and updates applied and without expired rows.
    Candidate: the staged version as readers of the published one see it: its raw data files
    through its deletion vectors, or merged on read. Conflicted if another version now has the planned one's number.
    `task_bytes`: what a proof may hold in memory; None leaves it to the format.
    """
    try:
        staged = table.staged(candidate)
    except EvidenceError as damage:
        return Mismatch((), (str(damage),))
    base = table.snapshot(plan.version, read_as=staged)
    lost = another(plan.base, base.identity)
    if lost is not None:
        return Conflicted(tuple((key, lost) for key in candidate.units))
    pairs = _pairs(table.units(base), table.units(staged), candidate)
    faults = (
        *_identity_faults(plan, candidate, staged),
        *_clock_faults(plan, table.gate.clock(staged)),
        *table.gate.faults(base, staged, candidate.units),
    )
    change = PlannedChange(plan.rows, plan.sets, plan.clock_ms)
    parts = [part for pair in pairs for part in table.gate.pieces(*_within(table.gate, pair, task_bytes))]
    proofs = _joined(mapper(_ProofTask(table.gate, level, change), parts, label="verify"))
    if faults or not all(proof.proven for proof in proofs):
        return Mismatch(proofs, faults)
    return Verified(plan, candidate, tuple(rewrites), proofs, level)


def _identity_faults(plan: Plan[object], candidate: Candidate, staged: Snapshot) -> Iterator[str]:
    """Why the candidate is not the planned change of the planned version. Equal rows alone do not prove that."""
    if candidate.parent_version != plan.version:
        yield f"candidate is on top of version {candidate.parent_version}, expected the planned {plan.version}"
    elif candidate.parent != plan.base:
        yield f"candidate is on top of version {candidate.parent}, expected the planned {plan.base}"
    if staged.version != candidate.version:
        yield f"candidate states version {staged.version}, expected {candidate.version}"
    if staged.changes_rows is not (plan.rows is not None):
        yield f"candidate states that it changes rows: {staged.changes_rows}, expected {not staged.changes_rows}"


def _clock_faults(plan: Plan[object], stated: int | None) -> Iterator[str]:
    if stated != plan.clock_ms:
        yield f"candidate states that rows expired by the clock {stated}, expected the planned {plan.clock_ms}"


def _pairs(base: Sequence[U], staged: Sequence[U], candidate: Candidate) -> list[tuple[U, U]]:
    before = {unit.key: unit for unit in base}
    after = {unit.key: unit for unit in staged}
    lost = [str(key) for key in candidate.units if key not in after]
    if lost:
        raise EvidenceError(candidate.metadata, "every unit that was worked on", f"none of {', '.join(lost)}")
    return [(before[key], after[key]) for key in candidate.units]


def _joined(parts: Sequence[UnitProof]) -> tuple[UnitProof, ...]:
    """One proof per unit: the sum of the proofs of its parts."""
    proofs: dict[UnitKey, UnitProof] = {}
    for part in parts:
        proofs[part.key] = part if part.key not in proofs else _added(proofs[part.key], part)
    return tuple(proofs.values())


def _added(left: UnitProof, right: UnitProof) -> UnitProof:
    cost = TaskCost(
        left.cost.seconds + right.cost.seconds,
        left.cost.cpu_seconds + right.cost.cpu_seconds,
        max(left.cost.peak_bytes, right.cost.peak_bytes),
        left.cost.executor,
    )
    base, candidate = left.base + right.base, left.candidate + right.candidate
    return UnitProof(left.key, base, candidate, left.faults + right.faults, cost)


def _within(gate: Gate[S, U], pair: tuple[U, U], task_bytes: int | None) -> tuple[U, U]:
    base, candidate = pair
    return pair if task_bytes is None else (gate.within(base, task_bytes), gate.within(candidate, task_bytes))


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a plan does to the rows that readers of the base see: none, or those that go, and those that are set."""

    deleted: str | None = None
    sets: tuple[str, ...] = ()
    clock_ms: int | None = None

    def __bool__(self) -> bool:
        return self != NO_CHANGE


NO_CHANGE = PlannedChange()


@dataclass(frozen=True, slots=True)
class _ProofTask(Generic[S, U]):
    gate: Gate[S, U]
    level: VerifyLevel
    change: PlannedChange

    def __call__(self, pair: tuple[U, U]) -> UnitProof:
        return prove(self.gate, *pair, level=self.level, change=self.change)


def prove(
    gate: Gate[S, U], base: U, candidate: U, *, level: VerifyLevel, change: PlannedChange = NO_CHANGE
) -> UnitProof:
    """The proof of one unit.

    Rows that both sides have at the same place of the same file are read once, for both: the faults of a unit report
    where metadata would have readers read a kept file differently. At level `touched` they are counted but not read,
    unless the plan changes rows: then one of them may be one that should be gone.
    """
    meter = CostMeter()
    truth, view = gate.survivors(base, View.MERGED), gate.published(candidate)
    try:
        places = compare_positions(truth, gate.survivors(candidate, view))
        counts_only = level is VerifyLevel.TOUCHED and not change
        kept = _counted(places.both) if counts_only else _kept(gate, base, gate.rows(candidate, places.both), change)
        new = _Sum(_total(gate.merged(candidate, view)))
        of_files = gate.unit_faults(base, candidate, places.after, new.add)
        faults = (*of_files, *_unreported(gate, base, candidate))
    except EvidenceError as damage:
        # The base is readable, so the damage is in our own candidate.
        places, kept = compare_positions(truth, {}), (Fingerprint(), Fingerprint())
        new, faults = _Sum(), (str(damage),)
    old = chain(gate.rows(base, places.before), gate.merged(base, View.MERGED))
    moved = _total(_changed(gate, base, old, change))
    return UnitProof(base.key, kept[0] + moved, kept[1] + new.total, faults, meter.cost())


@dataclass(slots=True)
class _Sum:
    """The fingerprint of the rows that were added."""

    total: Fingerprint = field(default_factory=Fingerprint)

    def add(self, batch: pa.RecordBatch) -> None:
        self.total += fingerprint(batch)


def _counted(common: Positions) -> tuple[Fingerprint, Fingerprint]:
    count = Fingerprint(rows=sum(len(bitmap) for bitmap in common.values()))
    return count, count


def _kept(
    gate: Gate[S, U], base: U, batches: Iterable[pa.RecordBatch], change: PlannedChange
) -> tuple[Fingerprint, Fingerprint]:
    """The rows that both sides have: those that must be left, and those that are."""
    expected, found = Fingerprint(), Fingerprint()
    for batch in batches:
        own = fingerprint(batch)
        expected += _total(_changed(gate, base, [batch], change)) if change else own
        found += own
    return expected, found


def _unreported(gate: Gate[S, U], base: U, candidate: U) -> Iterator[str]:
    """Why streaming readers would not see what readers of the candidate see."""
    expected, found = _total(gate.changes(base, candidate)), _total(gate.changelog(candidate))
    if expected != found:
        yield f"changes for streaming readers differ: expected {expected}, found {found}"


def _changed(
    gate: Gate[S, U], base: U, batches: Iterable[pa.RecordBatch], change: PlannedChange
) -> Iterator[pa.RecordBatch]:
    """The rows that stay and do not expire; of an update also the others, as they are set."""
    if not change:
        yield from batches
        return
    left = map(without_views, batches)
    for batch in left if change.deleted is None else _staying(left, change.deleted, change.sets):
        yield batch if change.clock_ms is None else gate.unexpired(base, batch, change.clock_ms)


def _staying(batches: Iterable[pa.RecordBatch], condition: str, sets: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        test = rows_where(condition, batch.schema)
        yield staying(test, batch)
        if sets:
            yield _as_set(sets, matching(test, batch))


def _as_set(sets: tuple[str, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    try:
        return expected_rows(assignments(sets, batch.schema), batch)
    except UnfitValueError as failure:
        raise EvidenceError("rows to update", "values that fit, as the rewrite found", str(failure)) from failure


def _total(batches: Iterable[pa.RecordBatch]) -> Fingerprint:
    return reduce(add, (fingerprint(batch) for batch in batches), Fingerprint())
