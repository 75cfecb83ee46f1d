"""Results of the stages for a batch of units -> parts of the document: units, sizes, costs, reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nightkeep.model import Committed, Conflicted, FileSizes, Mismatch, Outcome, Rewrite, UnitKey, UnitProof, Verified
from nightkeep.protocol import OpenPlan, OpenWide, Snapshot, SomeEdit, SomeTask
from nightkeep.records import Metrics, UnitResult

Rewrites = tuple[Rewrite[SomeEdit], ...]
Proven = Verified[SomeTask | OpenWide, SomeEdit]


@dataclass(frozen=True, slots=True)
class Batch:
    """Units that were rewritten, proven and published together; `published` is None after a mismatch.

    `checked` is None if the base version disappeared before anything could be proven.
    """

    rewrites: Rewrites
    checked: Proven | Mismatch | None
    published: Committed | Conflicted | None
    staged: tuple[str, ...]

    @property
    def proofs(self) -> tuple[UnitProof, ...]:
        return () if self.checked is None else self.checked.proofs


def versions_of(ended: Sequence[Batch]) -> tuple[int, ...]:
    """The versions that were committed."""
    return tuple(commit.version for commit in published(ended))


def unit_results(batch: Batch) -> tuple[UnitResult, ...]:
    """One result for each unit that was published or lost its race, with the unit's proof if there is one."""
    lost: Mapping[UnitKey, str] = {}
    if isinstance(batch.published, Committed):
        lost = dict(batch.published.conflicted)
    if isinstance(batch.published, Conflicted):
        lost = dict(batch.published.units)
    proven = {proof.key for proof in batch.proofs}
    unproven = ((key, why) for key, why in lost.items() if key not in proven)
    return (
        *(
            UnitResult.of(proof, Outcome.CONFLICTED if proof.key in lost else Outcome.VERIFIED, lost.get(proof.key))
            for proof in batch.proofs
        ),
        *(UnitResult(key.partition, key.bucket, Outcome.CONFLICTED, why) for key, why in unproven),
    )


def published(ended: Sequence[Batch]) -> tuple[Committed, ...]:
    """The commits of batches, in their order."""
    return tuple(batch.published for batch in ended if isinstance(batch.published, Committed))


def share_of_rewrite(seconds: Mapping[str, float]) -> float | None:
    return seconds["verify"] / seconds["rewrite"] if seconds.get("rewrite") and "verify" in seconds else None


def run_metrics(metrics: Metrics, batch: Batch) -> Metrics:
    """`metrics` with the batch's rows and costs added."""
    proofs = batch.proofs
    costs = [*(rewrite.cost for rewrite in batch.rewrites), *(proof.cost for proof in proofs)]
    peaks = [cost.peak_bytes for cost in costs]
    totals: Mapping[str, Any] = metrics.extra
    cpu = totals.get("cpu_seconds", {"rewrite": 0.0, "verify": 0.0})
    extra = {
        "rows_written": totals.get("rows_written", 0) + sum(rewrite.rows_written for rewrite in batch.rewrites),
        "cpu_seconds": {
            "rewrite": cpu["rewrite"] + sum(rewrite.cost.cpu_seconds for rewrite in batch.rewrites),
            "verify": cpu["verify"] + sum(proof.cost.cpu_seconds for proof in proofs),
        },
        "executors": dict(Counter(totals.get("executors", {})) + Counter(cost.executor for cost in costs)),
    }
    expired = totals.get("rows_expired", 0) + sum(rewrite.rows_expired for rewrite in batch.rewrites)
    if expired:
        extra["rows_expired"] = expired
    return replace(
        metrics,
        rows=(metrics.rows or 0) + sum(proof.base.rows for proof in proofs),
        deleted_rows_marked=(metrics.deleted_rows_marked or 0) + sum(r.rows_marked for r in batch.rewrites),
        peak_task_memory=max([*peaks, metrics.peak_task_memory or 0], default=None) or None,
        extra={**totals, **extra},
    )


def sizes(sizes: FileSizes, after: Snapshot | None, metrics: Metrics) -> Metrics:
    """File counts, sizes and levels of one side: before the run, or of the published version `after`."""
    side = "before" if after is None else "after"
    levels = Counter(str(level) for level in sizes.levels if level is not None)
    extra = {**metrics.extra, f"file_sizes_{side}": list(sizes.bytes), f"levels_{side}": dict(sorted(levels.items()))}
    changes: dict[str, Any] = {f"files_{side}": len(sizes.bytes), f"bytes_{side}": sum(sizes.bytes), "extra": extra}
    if after is not None:
        changes["deletion_vectors"] = sizes.vectors
    return replace(metrics, **changes)


def unfinished(planned: OpenPlan, done: Sequence[UnitResult]) -> tuple[UnitResult, ...]:
    """A result for each unit of the plan that is not in `done`; it holds if the run ends here."""
    finished = {UnitKey(unit.partition, unit.bucket) for unit in done}
    return tuple(
        UnitResult(unit.key.partition, unit.key.bucket, Outcome.FAILED, "the run ended before it was published")
        for unit in planned.units
        if unit.key not in finished
    )


def mismatched(checked: Mismatch) -> tuple[UnitResult, ...]:
    return tuple(
        UnitResult.of(
            proof,
            Outcome.SKIPPED if proof.proven else Outcome.MISMATCH,
            "proven, but not published with the rest" if proof.proven else "; ".join(proof.faults) or None,
        )
        for proof in checked.proofs
    )


def ending_reason(checked: Mismatch, rewrites: Sequence[Rewrite[SomeEdit]]) -> str:
    """The reason for a mismatch. Findings of the rewrite come first: they often explain the difference."""
    findings = [f"{rewrite.key}: {finding}" for rewrite in rewrites for finding in rewrite.findings]
    faults = [f"{proof.key}: {fault}" for proof in checked.proofs for fault in proof.faults]
    unequal = [
        f"{p.key}: rows differ, {p.base} before and {p.candidate} after"
        for p in checked.proofs
        if p.base != p.candidate
    ]
    return "; ".join([*findings, *checked.faults, *faults, *unequal])
