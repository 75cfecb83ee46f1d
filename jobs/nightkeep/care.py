"""One table, one operation: policy -> plan -> rewrite -> gate -> publish -> a document that says how it went.

Expected endings are outcomes in the document. Only what the caller must mend, or must see as evidence, is raised.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nightkeep.errors import CorruptMetadata, NightkeepError, UsageError
from nightkeep.execute import execute
from nightkeep.formats import open_table
from nightkeep.model import Committed, Mismatch, Operation, Outcome, Plan, Request, Run, run_token
from nightkeep.plan import batches, plan
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import ChangesRows, MayBeNew, Snapshot, Table, Watch
from nightkeep.publish import publish
from nightkeep.report import (
    CommitResult,
    Metrics,
    PlanSection,
    RunDocument,
    Verification,
    document_path,
    ending,
    load_document,
    secure,
)  # fmt: skip
from nightkeep.rows.keys import key_condition
from nightkeep.rows.parse import shortened
from nightkeep.software import versions
from nightkeep.tally import Batch, measured, mismatched, share, sizes, unfinished, unit_results, versions_of, why
from nightkeep.tasks import Exchange, Mapper, inline_exchange
from nightkeep.undone import facts, look_back, settle
from nightkeep.verify import verify
from nightkeep.waiting import not_now

UNFINISHED = "ended before it was done; the same run, started again, looks for what it published"
"""What a document says that is stored before anything is staged."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks of one table, beyond its policy. `reports` is where holds are kept.

    `rows`, a condition, or `keys`, a file of keys, tell the rows to delete, without which no row is.
    """

    operation: Operation
    run_id: str
    reports: str
    dry_run: bool = False
    rows: str | None = None
    keys: Path | None = None


@dataclass(frozen=True, slots=True)
class _Workers:
    """Where tasks run."""

    mapper: Mapper
    exchange: Exchange


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


def care(
    policy: EffectivePolicy, order: Order, *, mapper: Callable[[], Mapper],
    exchange: Callable[[], Exchange] = lambda: inline_exchange,
) -> RunDocument:  # fmt: skip
    """Run one operation on one table. `mapper` and `exchange` are called only when there is work, as starting
    Spark costs seconds.

    Raises UsageError for a request that cannot be understood. Everything else ends in the document.
    """
    log = _Log(policy, order)
    if policy.settings.pause is not None:
        return log.document(Outcome.SKIPPED, f"paused: {policy.settings.pause}")
    try:
        return _care(log, open_table(policy.address), lambda: _Workers(mapper(), exchange()))
    except UsageError:
        raise
    except (NightkeepError, OSError) as failure:
        return log.document(*ending(failure, policy.address.name))


def failed(policy: EffectivePolicy, order: Order, reason: str) -> RunDocument:
    """The document of an operation that a surprise ended."""
    return _Log(policy, order).document(Outcome.FAILED, reason)


def _care(log: _Log, table: Table[Any], workers: Callable[[], _Workers]) -> RunDocument:
    run = _run(log.order)
    # Before anything may skip the table: what this run published earlier is still to be checked and reported.
    earlier = () if log.order.dry_run else table.committed(run)
    if earlier:
        return _found(log, table, earlier)
    waiting = None if log.order.dry_run else not_now(log.policy, log.order.reports, log.started)
    if waiting:
        return log.document(Outcome.SKIPPED, waiting)
    if isinstance(table, MayBeNew) and table.never_written():
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    with log.stage("plan"):
        base = table.snapshot()
        request = _request(log, table, base, run=run)
        found = plan(table, base, request)
        watch = look_back(table, base, log.order.reports, now_ms=run.now_ms)
    log.facts |= {
        "base_version": base.version,
        "plan": PlanSection.of(found, request.clustering),
        "metrics": sizes(base.sizes, None, Metrics()),
    }
    if watch is not None and (undone := _undone(log, table, watch)):
        return undone
    if not found.units:
        return log.document(Outcome.UNCHANGED, "nothing to do")
    if log.order.dry_run:
        return log.document(Outcome.SKIPPED, "dry run: this is the plan, nothing was changed")
    return _work(log, table, base, found, run=run, workers=workers())


def _undone(log: _Log, table: Table[Any], watch: Watch) -> RunDocument | None:
    """What another writer undid, to be looked at by people before anything else happens to the table."""
    dry_run = log.order.dry_run
    document = log.document(**facts(table, watch, dry_run=dry_run)) if watch.undone else None
    if not dry_run:
        settle(watch, document, reports=log.order.reports, table=log.policy.address.name)
    return document


def _work(
    log: _Log, table: Table[Any], base: Snapshot[Any], found: Plan, *, run: Run, workers: _Workers
) -> RunDocument:
    """Batch after batch, each with a commit of its own: what ends one early costs no other its work."""
    ended: list[Batch] = []
    log.facts["units"] = unfinished(found, ())
    secure(log.document(Outcome.FAILED, UNFINISHED), log.order.reports)
    # Rows that are to go go at once.
    for batch in batches(found, log.policy.settings.commit_size) if found.rows is None else (found,):
        # What the batch before it staged is published: names are taken.
        named = replace(run, attempt=_attempt())
        done = _batch(log, table, base, batch, run=named, workers=workers, earlier=versions_of(ended))
        if done is None:
            continue
        ended.append(done)
        log.facts |= {
            "verification": Verification(log.policy.settings.verify, share(log.seconds)),
            "metrics": measured(log.facts["metrics"], ended[-1]),
        }
        if isinstance(ended[-1].checked, Mismatch):
            # A rewrite that changed rows once may do so again: the rest is left for after someone has looked.
            return _mismatch(log, ended)
        # A later batch may raise: what was published by then is still to be checked and reported.
        told = tuple(unit for each in ended for unit in unit_results(each))
        log.facts |= {"units": (*told, *unfinished(found, told)), **_commits(ended)}
    if not ended:
        why_not = "everything is as it should be" if found.rows is None else f"no row where {shortened(found.rows)}"
        return log.document(Outcome.UNCHANGED, why_not, units=())
    return _ended(log, table, base, ended)


def _batch(
    log: _Log, table: Table[Any], base: Snapshot[Any], part: Plan, *,
    run: Run, workers: _Workers, earlier: Collection[int],
) -> Batch | None:  # fmt: skip
    """None where rows were to go and no row was found, or where a commit would change nothing."""
    with log.stage("rewrite"):
        rewrites = execute(table, part, run, mapper=workers.mapper, exchange=workers.exchange)
    if part.rows is not None and not any(rewrite.rows_marked for rewrite in rewrites):
        return None
    with log.stage("verify"):
        candidate = table.stage(base, rewrites, run)
        if not candidate.units:
            return None
        checked = verify(table, part, rewrites, candidate, level=log.policy.settings.verify, mapper=workers.mapper)
    if isinstance(checked, Mismatch):
        return Batch(rewrites, checked, None, candidate.staged)
    with log.stage("publish"):
        return Batch(rewrites, checked, publish(table, checked, run, earlier=earlier), candidate.staged)


def _mismatch(log: _Log, ended: Sequence[Batch]) -> RunDocument:
    *before, last = ended
    assert isinstance(last.checked, Mismatch)
    units = (*(unit for batch in before for unit in unit_results(batch)), *mismatched(last.checked))
    reason, evidence = why(last.checked, last.rewrites), {"evidence": list(last.staged)}
    return log.document(Outcome.MISMATCH, reason, units=units, extra=evidence)


def _ended(log: _Log, table: Table[Any], base: Snapshot[Any], ended: Sequence[Batch]) -> RunDocument:
    units = tuple(unit for batch in ended for unit in unit_results(batch))
    lost = [unit for unit in units if unit.outcome is Outcome.CONFLICTED]
    published = _commits(ended)
    if not published:
        return log.document(Outcome.CONFLICTED, "lost a race for every unit; the next run plans again", units=units)
    after = table.snapshot(published["committed_version"])
    touched = [key for commit in published["commits"] for key in commit.units]
    metrics = sizes(after.sizes, after, log.facts["metrics"])
    reason = f"{len(lost)} of {len(units)} units lost a race; the next run plans them again" if lost else None
    return log.document(
        Outcome.worst(unit.outcome for unit in units), reason, units=units,
        metrics=replace(metrics, extra={**metrics.extra, **table.figures(base, after, touched)}), **published,
    )  # fmt: skip


def _commits(ended: Sequence[Batch]) -> dict[str, Any]:
    return _versions([batch.published for batch in ended if isinstance(batch.published, Committed)])


def _versions(done: Sequence[Committed]) -> dict[str, Any]:
    """What the document says of versions, oldest first; nothing where no batch was published."""
    if not done:
        return {}
    return {
        "parent_version": done[-1].parent_version,
        "committed_version": done[-1].version,
        "commits": tuple(CommitResult(each.version, each.parent_version, each.units) for each in done),
    }


def _found(log: _Log, table: Table[Any], earlier: Sequence[Committed]) -> RunDocument:
    """A retry after a death between commit and report: what was published had been proven before it was."""
    path = document_path(
        log.order.reports, log.policy.address.name, run_id=log.order.run_id, operation=log.order.operation
    )
    versions = [each.version for each in earlier]
    # What cannot be read tells nothing; the table itself says what was published.
    with suppress(FileNotFoundError, CorruptMetadata):
        told = load_document(path)
        if {*versions} <= {commit.version for commit in told.commits}:
            return told
    after = table.snapshot(versions[-1])
    named = f"version {versions[0]} was" if len(versions) == 1 else f"versions {', '.join(map(str, versions))} were"
    return log.document(
        Outcome.VERIFIED, f"{named} published by an earlier attempt of this run",
        base_version=earlier[0].parent_version, metrics=sizes(after.sizes, after, Metrics()), **_versions(earlier),
    )  # fmt: skip


def _run(order: Order) -> Run:
    return Run(order.run_id, run_token(order.run_id, order.operation), _attempt(), time.time_ns() // 1_000_000)


def _attempt() -> str:
    return uuid.uuid4().hex[:8]


def _request(log: _Log, table: Table[Any], base: Snapshot[Any], *, run: Run) -> Request:
    settings, rows = log.policy.settings, log.order.rows
    if log.order.keys is not None and isinstance(table, ChangesRows):
        rows = key_condition(log.order.keys, table.columns(base))
    return Request(
        operation=log.order.operation, now_ms=run.now_ms, full=settings.full, rows=rows,
        # The policy's filter is for the night.
        where=settings.where if rows is None else None,
        target_bytes=settings.target_size, allow_compacting_writers=settings.allow_compacting_writers,
        # A policy's clustering is for when files are rewritten.
        clustering=settings.clustering if log.order.operation is Operation.OPTIMIZE else None,
        min_bytes=settings.min_file_size,
        max_deleted_ratio=settings.max_deleted_ratio, task_bytes=settings.task_memory,
        wide_bytes=settings.exchange_above, writers=settings.writers,
    )  # fmt: skip
