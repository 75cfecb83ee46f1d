"""One table, one operation: policy -> plan -> rewrite -> gate -> publish -> a document that says how it went.

Expected endings are outcomes in the document. Only what the caller must mend, or must see as evidence, is raised.
"""

from __future__ import annotations

import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from typing import Any

from nightkeep import __version__
from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.execute import execute
from nightkeep.formats import open_table
from nightkeep.model import (
    Committed,
    Conflicted,
    FileSizes,
    Mismatch,
    Operation,
    Outcome,
    Plan,
    Request,
    Rewrite,
    Run,
    UnitKey,
    UnitProof,
    Verified,
    run_token,
)  # fmt: skip
from nightkeep.plan import plan
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import Snapshot, Table
from nightkeep.publish import publish
from nightkeep.report import (
    CommitResult,
    Metrics,
    PlanSection,
    RunDocument,
    UnitResult,
    Verification,
    document_path,
    held,
    load_document,
)  # fmt: skip
from nightkeep.tasks import Mapper
from nightkeep.verify import verify

PACKAGES = ("pyspark", "pyarrow", "polars", "pyroaring", "fastavro")


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks of one table, beyond its policy. `reports` is where holds are kept."""

    operation: Operation
    run_id: str
    reports: str
    dry_run: bool = False


@dataclass
class _Log:
    """The document in the making; stages add to it in the order they run."""

    policy: EffectivePolicy
    order: Order
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def document(self, outcome: Outcome, reason: str | None = None, **facts: Any) -> RunDocument:
        known = {**self.facts, **facts}
        metrics = replace(known.pop("metrics", Metrics()), seconds=dict(self.seconds))
        address = self.policy.address
        return RunDocument(
            run_id=self.order.run_id, table=address.name, format=address.format, operation=self.order.operation,
            outcome=outcome, reason=reason, address=str(address), started_at=self.started,
            finished_at=datetime.now(UTC), versions=versions(), metrics=metrics, **known,
        )  # fmt: skip


def care(policy: EffectivePolicy, order: Order, *, mapper: Callable[[], Mapper]) -> RunDocument:
    """Run one operation on one table. `mapper` is called only when there is work, as starting Spark costs seconds.

    Raises UsageError for a request that cannot be understood. Everything else ends in the document.
    """
    log = _Log(policy, order)
    if policy.settings.pause is not None:
        return log.document(Outcome.SKIPPED, f"paused: {policy.settings.pause}")
    try:
        return _care(log, open_table(policy.address), mapper)
    except RefusedTable as refusal:
        subject = "" if refusal.table == policy.address.name else f"{refusal.table}: "
        return log.document(Outcome.REFUSED, f"{subject}{refusal.feature}; {refusal.advice}")
    except UsageError:
        raise
    except (NightkeepError, OSError) as failure:
        return log.document(Outcome.FAILED, f"{type(failure).__name__}: {failure}")


def failed(policy: EffectivePolicy, order: Order, reason: str) -> RunDocument:
    """The document of an operation that a surprise ended."""
    return _Log(policy, order).document(Outcome.FAILED, reason)


def _not_now(policy: EffectivePolicy, order: Order, now: datetime) -> str | None:
    """Why the policy, or a hold, says to leave the table alone."""
    settings, hold = policy.settings, held(order.reports, policy.address.name)
    if hold is not None and not order.dry_run:
        return f"on hold since run {hold.run_id}: {hold.reason}; nightkeep release {policy.address.name} lifts it"
    if settings.window is not None and not settings.window.contains(now) and not order.dry_run:
        return f"outside its window {settings.window}"
    return None


def _care(log: _Log, table: Table[Any], mapper: Callable[[], Mapper]) -> RunDocument:
    run = _run(log.order)
    # Before anything may skip the table: what this run published earlier is still to be checked and reported.
    earlier = None if log.order.dry_run else table.committed(run)
    if earlier is not None:
        return _found(log, table, earlier)
    waiting = _not_now(log.policy, log.order, log.started)
    if waiting:
        return log.document(Outcome.SKIPPED, waiting)
    with log.stage("plan"):
        base = table.snapshot()
        found = plan(table, base, _request(log, run))
    log.facts |= {
        "base_version": base.version,
        "plan": PlanSection.of(found),
        "metrics": _sizes(base.sizes, None, Metrics()),
    }
    if not found.units:
        return log.document(Outcome.UNCHANGED, "nothing to do")
    if log.order.dry_run:
        return log.document(Outcome.SKIPPED, "dry run: this is the plan, nothing was changed")
    return _work(log, table, base, found, run=run, mapper=mapper())


def _work(log: _Log, table: Table[Any], base: Snapshot[Any], found: Plan, *, run: Run, mapper: Mapper) -> RunDocument:
    with log.stage("rewrite"):
        rewrites = execute(table, found, run, mapper=mapper)
    with log.stage("verify"):
        candidate = table.stage(base, rewrites, run)
        level = log.policy.settings.verify
        checked = verify(table, found, rewrites, candidate, level=level, mapper=mapper)
    log.facts |= {
        "verification": Verification(level, _share(log.seconds)),
        "metrics": _measured(log.facts["metrics"], rewrites, checked.proofs),
    }
    if isinstance(checked, Mismatch):
        evidence = {"evidence": list(candidate.staged)}
        return log.document(Outcome.MISMATCH, _why(checked, rewrites), units=_mismatched(checked), extra=evidence)
    with log.stage("publish"):
        published = publish(table, checked, run)
    if isinstance(published, Conflicted):
        return log.document(
            Outcome.CONFLICTED, "lost a race for every unit; the next run plans again",
            units=_units(checked, dict(published.units)),
        )  # fmt: skip
    return _published(log, table, checked, published)


def _published(log: _Log, table: Table[Any], checked: Verified, published: Committed) -> RunDocument:
    lost = dict(published.conflicted)
    units = _units(checked, lost)
    after = table.snapshot(published.version)
    reason = f"{len(lost)} of {len(units)} units lost a race; the next run plans them again" if lost else None
    return log.document(
        Outcome.worst(unit.outcome for unit in units), reason, units=units,
        parent_version=published.parent_version, committed_version=published.version,
        commits=(CommitResult(published.version, published.parent_version, published.units),),
        metrics=_sizes(after.sizes, after, log.facts["metrics"]),
    )  # fmt: skip


def _found(log: _Log, table: Table[Any], earlier: Committed) -> RunDocument:
    """A retry after a death between commit and report: what was published had been proven before it was."""
    path = document_path(
        log.order.reports, log.policy.address.name, run_id=log.order.run_id, operation=log.order.operation
    )
    if path.exists() and (told := load_document(path)).committed_version == earlier.version:
        return told
    after = table.snapshot(earlier.version)
    return log.document(
        Outcome.VERIFIED, f"version {earlier.version} was published by an earlier attempt of this run",
        base_version=earlier.parent_version, parent_version=earlier.parent_version,
        committed_version=earlier.version,
        commits=(CommitResult(earlier.version, earlier.parent_version, earlier.units),),
        metrics=_sizes(after.sizes, after, Metrics()),
    )  # fmt: skip


def _run(order: Order) -> Run:
    token = run_token(order.run_id, order.operation)
    return Run(order.run_id, token, uuid.uuid4().hex[:8], time.time_ns() // 1_000_000)


def _request(log: _Log, run: Run) -> Request:
    settings = log.policy.settings
    return Request(
        operation=log.order.operation, now_ms=run.now_ms, where=settings.where, full=settings.full,
        target_bytes=settings.target_size, allow_compacting_writers=settings.allow_compacting_writers,
    )  # fmt: skip


def _share(seconds: Mapping[str, float]) -> float | None:
    return seconds["verify"] / seconds["rewrite"] if seconds.get("rewrite") else None


def _measured(metrics: Metrics, rewrites: Sequence[Rewrite], proofs: Sequence[UnitProof]) -> Metrics:
    costs = [*(rewrite.cost for rewrite in rewrites), *(proof.cost for proof in proofs)]
    extra = {
        "rows_written": sum(rewrite.rows_written for rewrite in rewrites),
        "cpu_seconds": {
            "rewrite": sum(rewrite.cost.cpu_seconds for rewrite in rewrites),
            "verify": sum(proof.cost.cpu_seconds for proof in proofs),
        },
        "executors": dict(Counter(cost.executor for cost in costs)),
    }
    return replace(
        metrics,
        rows=sum(proof.base.rows for proof in proofs),
        deleted_rows_marked=sum(rewrite.rows_marked for rewrite in rewrites),
        peak_task_memory=max((cost.peak_bytes for cost in costs), default=None),
        extra={**metrics.extra, **extra},
    )


def _sizes(sizes: FileSizes, after: Snapshot[Any] | None, metrics: Metrics) -> Metrics:
    """File counts, sizes and levels of one side: before the run, or of the published version `after`."""
    side = "before" if after is None else "after"
    levels = Counter(str(level) for level in sizes.levels if level is not None)
    extra = {**metrics.extra, f"file_sizes_{side}": list(sizes.bytes), f"levels_{side}": dict(sorted(levels.items()))}
    changes: dict[str, Any] = {f"files_{side}": len(sizes.bytes), f"bytes_{side}": sum(sizes.bytes), "extra": extra}
    if after is not None:
        changes["deletion_vectors"] = sizes.vectors
    return replace(metrics, **changes)


def _units(checked: Verified, lost: Mapping[UnitKey, str]) -> tuple[UnitResult, ...]:
    return tuple(
        UnitResult.of(proof, Outcome.CONFLICTED if proof.key in lost else Outcome.VERIFIED, lost.get(proof.key))
        for proof in checked.proofs
    )


def _mismatched(checked: Mismatch) -> tuple[UnitResult, ...]:
    return tuple(
        UnitResult.of(proof, Outcome.SKIPPED if proof.proven else Outcome.MISMATCH,
                      "proven, but not published with the rest" if proof.proven else "; ".join(proof.faults) or None)
        for proof in checked.proofs
    )  # fmt: skip


def _why(checked: Mismatch, rewrites: Sequence[Rewrite]) -> str:
    """What an operator should know first: findings of the rewrite explain many a difference."""
    findings = [f"{rewrite.key}: {finding}" for rewrite in rewrites for finding in rewrite.findings]
    faults = [f"{proof.key}: {fault}" for proof in checked.proofs for fault in proof.faults]
    unequal = [
        f"{p.key}: rows differ, {p.base} before and {p.candidate} after"
        for p in checked.proofs
        if p.base != p.candidate
    ]
    return "; ".join([*findings, *checked.faults, *faults, *unequal])


def versions() -> dict[str, str]:
    """Software that took part, by name."""
    return {
        "nightkeep": __version__,
        "python": platform.python_version(),
        **{name: installed(name) for name in PACKAGES},
    }
