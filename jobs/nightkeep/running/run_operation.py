"""One table, one operation: policy -> plan -> rewrite -> gate -> publish -> a document that says how it went.

Expected endings are outcomes in the document. Only what the caller must mend, or must see as evidence, is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from nightkeep.errors import EvidenceError, NightkeepError, NotCreated, RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.model import (
    Candidate,
    Committed,
    Conflicted,
    Mismatch,
    Outcome,
    Run,
)  # fmt: skip
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import ChangesRows, MayBeNew, OpenPlan, OpenTable, Outlines, Snapshot, Watch
from nightkeep.reports import (
    Metrics,
    PlanSection,
    RunDocument,
    Verification,
    failure_outcome,
    secure,
)  # fmt: skip
from nightkeep.running import run_outcomes
from nightkeep.running.planned_work import PlannedWork, Reader, Reading, new_attempt, request_of, run_of
from nightkeep.running.run_ids import require_same
from nightkeep.running.run_log import RunLog, RunOrder
from nightkeep.running.run_summary import (
    Batch,
    Proven,
    Rewrites,
    commits,
    published,
    run_metrics,
    share_of_rewrite,
    sizes,
    unfinished,
    unit_results,
    versions_of,
)  # fmt: skip
from nightkeep.running.skip_reasons import skip_reason
from nightkeep.running.undone_deletes import find_undone_deletes, hold_if_undone, undone_facts
from nightkeep.running.unpublished_files import removing_unpublished
from nightkeep.sql_text.rows.parse import shortened
from nightkeep.stages.base_version import replaced
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import batches, plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import Exchange, Mapper, inline_exchange

__all__ = ["RunOrder", "failed_run", "read_table", "run_operation"]
UNFINISHED = "ended before it was done; the same run, started again, looks for what it published"
"""What a document says that is stored before anything is staged."""


@dataclass(frozen=True, slots=True)
class _Workers:
    """Where tasks run."""

    mapper: Mapper
    exchange: Exchange


def read_table(policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
    """Open the table, and plan unless this run has published something of it already. Reads metadata only.

    Raises what reading and planning raise.
    """
    table = open_table(policy.address)
    # Before anything may skip the table: what this run published earlier is still to be checked and reported.
    earlier = _own_commits(order, table, run)
    if earlier or not plans:
        return Reading(table, earlier)
    try:
        return Reading(table, planned=_planned(policy, order, table, run))
    except RefusedTable:
        late = _own_commits(order, table, run)
        if not late:
            raise
        return Reading(table, late)


def run_operation(
    policy: EffectivePolicy, order: RunOrder, *, mapper: Callable[[], Mapper],
    exchange: Callable[[], Exchange] = lambda: inline_exchange, reader: Reader = read_table,
) -> RunDocument:  # fmt: skip
    """Run one operation on one table. `mapper` and `exchange` are called only when there is work, as starting
    Spark costs seconds. `reader` does what `read_table` does, wherever it does it.

    Raises UsageError for a request that cannot be understood. Everything else ends in the document.
    """
    log = RunLog(policy, order)
    if policy.settings.pause is not None:
        return log.document(Outcome.SKIPPED, f"paused: {policy.settings.pause}")
    try:
        return _care(log, reader, lambda: _Workers(mapper(), exchange()))
    except UsageError:
        raise
    except (NightkeepError, OSError) as failure:
        return log.document(*failure_outcome(failure, policy.address.name))


def failed_run(policy: EffectivePolicy, order: RunOrder, reason: str) -> RunDocument:
    """The document of an operation that a surprise ended."""
    return RunLog(policy, order).document(Outcome.FAILED, reason)


def published_earlier(policy: EffectivePolicy, order: RunOrder) -> RunDocument | None:
    """The document of what this run has published already, None where that is nothing. Reads metadata only."""
    table = open_table(policy.address)
    done = table.committed(run_of(order))
    return run_outcomes.published_document(RunLog(policy, order), table, done) if done else None


def _care(log: RunLog, reader: Reader, workers: Callable[[], _Workers]) -> RunDocument:
    order, run = log.order, run_of(log.order)
    waiting = skip_reason(log.policy, order.reports, log.started)
    reading = reader(log.policy, order, run, plans=order.dry_run or not waiting)
    require_same(order, log.policy.address.name, published=bool(reading.published))
    if reading.published:
        return run_outcomes.published_document(log, reading.table, reading.published)
    if waiting and not order.dry_run:
        return log.document(Outcome.SKIPPED, waiting)
    if reading.planned is None:
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    try:
        document = _as_planned(log, reading.table, reading.planned, run, workers, waiting=waiting)
    except RefusedTable:
        late = _own_commits(order, reading.table, run)
        if not late:
            raise
        return run_outcomes.published_document(log, reading.table, late)
    if document.outcome not in (Outcome.UNCHANGED, Outcome.CONFLICTED) or document.commits:
        return document
    # A commit of an earlier attempt that was on its way when it was looked for is why there is nothing to do.
    late = _own_commits(order, reading.table, run)
    return run_outcomes.published_document(log, reading.table, late) if late else document


def _own_commits(order: RunOrder, table: OpenTable, run: Run) -> Sequence[Committed]:
    """What this run has published already; a dry run publishes nothing, and does not look."""
    return () if order.dry_run else table.committed(run)


def _planned(policy: EffectivePolicy, order: RunOrder, table: OpenTable, run: Run) -> PlannedWork | None:
    """None where there is nothing to plan for."""
    if isinstance(table, MayBeNew) and table.never_written():
        return None
    begun = time.perf_counter()
    base = table.outline() if order.dry_run and isinstance(table, Outlines) else table.snapshot()
    request = request_of(policy, order, table, base, run=run)
    planned = plan(table, base, request)
    watch = find_undone_deletes(table, base, order.reports, now_ms=run.now_ms)
    return PlannedWork(base, request, planned, watch, time.perf_counter() - begun)


def _as_planned(
    log: RunLog,
    table: OpenTable,
    planned: PlannedWork,
    run: Run,
    workers: Callable[[], _Workers],
    *,
    waiting: str | None,
) -> RunDocument:
    base, proposed = planned.base, planned.plan
    log.seconds["plan"] = planned.seconds
    if waiting:
        proposed = replace(proposed, notes=(*proposed.notes, f"a run would be skipped now: {waiting}"))
    log.facts |= {
        "base_version": base.version,
        "base_identity": str(base.identity),
        "plan": PlanSection.of(proposed, planned.request.clustering),
        "metrics": sizes(base.sizes, None, Metrics()),
    }
    if planned.watch is not None and (undone := _undone(log, table, planned.watch)):
        return undone
    if not proposed.units:
        return log.document(Outcome.UNCHANGED, "; ".join(("nothing to do", *proposed.notes)))
    if log.order.dry_run:
        return _dry_run(log, table, proposed, workers)
    return _work(log, table, base, proposed, run=run, workers=workers())


def _dry_run(log: RunLog, table: OpenTable, planned: OpenPlan, workers: Callable[[], _Workers]) -> RunDocument:
    """The plan. Where rows are to be deleted, how many of them match as well: data is read for that."""
    if planned.rows is None or not isinstance(table, ChangesRows):
        return log.document(Outcome.SKIPPED, "dry run: this is the plan, nothing was changed")
    tasks = [task for unit in planned.units for task in unit.tasks]
    rows = sum(workers().mapper(table.count_matching, tasks, label="count"))
    reason = f"dry run: {rows:,} rows where {shortened(planned.rows)} would be hidden, nothing was changed"
    return log.document(Outcome.SKIPPED, reason, extra={"matching_rows": rows})


def _undone(log: RunLog, table: OpenTable, watch: Watch) -> RunDocument | None:
    """What another writer undid, to be looked at by people before anything else happens to the table."""
    dry_run = log.order.dry_run
    document = log.document(**undone_facts(table, watch, dry_run=dry_run)) if watch.undone else None
    if not dry_run:
        hold_if_undone(watch, document, reports=log.order.reports, table=log.policy.address.name)
    return document


def _work(
    log: RunLog, table: OpenTable, base: Snapshot, planned: OpenPlan, *, run: Run, workers: _Workers
) -> RunDocument:
    """Batch after batch, each with a commit of its own: what ends one early costs no other its work."""
    ended: list[Batch] = []
    log.facts["units"] = unfinished(planned, ())
    secure(log.document(Outcome.FAILED, UNFINISHED), log.order.reports)
    # Rows that are to go go at once.
    for batch in batches(planned, log.policy.settings.commit_size) if planned.rows is None else (planned,):
        # What the batch before it staged is published: names are taken.
        named = replace(run, attempt=new_attempt())
        done = _batch(log, table, base, batch, run=named, workers=workers, earlier=versions_of(ended))
        if done is None:
            continue
        ended.append(done)
        log.facts |= {
            "verification": Verification(log.policy.settings.verify, share_of_rewrite(log.seconds)),
            "metrics": run_metrics(log.facts["metrics"], ended[-1]),
        }
        if isinstance(ended[-1].checked, Mismatch):
            # A rewrite that changed rows once may do so again: the rest is left for after someone has looked.
            return run_outcomes.mismatch_document(log, ended)
        # A later batch may raise: what was published by then is still to be checked and reported.
        results = tuple(unit for each in ended for unit in unit_results(each))
        log.facts |= {"units": (*results, *unfinished(planned, results)), **commits(published(ended))}
        if any(each.undermined for each in published(ended)):
            return run_outcomes.undermined_document(log, table, published(ended), log.facts["units"])
    if not ended:
        why_not = "everything is as it should be" if planned.rows is None else f"no row where {shortened(planned.rows)}"
        return log.document(Outcome.UNCHANGED, why_not, units=())
    return run_outcomes.end_run(log, table, base, ended, run)


def _batch(
    log: RunLog, table: OpenTable, base: Snapshot, part: OpenPlan, *,
    run: Run, workers: _Workers, earlier: Collection[int],
) -> Batch | None:  # fmt: skip
    """None where rows were to go and no row was found, or where a commit would change nothing."""
    lost, written = replaced(table, part.base), list[str]()
    if lost is not None:
        return _lost(table, part, lost, written)
    try:
        with removing_unpublished(table, run, earlier=earlier, after=Exception):
            proven = _proven(log, table, base, part, run=run, workers=workers, written=written)
    except (EvidenceError, OSError) as failure:
        # Files of a version that went while it was worked on are no damage of the table.
        lost = replaced(table, part.base)
        if lost is None:
            raise
        return _lost(table, part, f"{lost}: {failure}", written)
    if proven is None:
        return None
    rewrites, candidate, checked = proven
    if isinstance(checked, Mismatch):
        lost = replaced(table, part.base)
        return Batch(rewrites, checked, None, candidate.staged) if lost is None else _lost(table, part, lost, written)
    if isinstance(checked, Conflicted):
        return _lost(table, part, checked.units[0][1], written)
    with log.stage("publish"), removing_unpublished(table, run, earlier=earlier, after=NotCreated):
        return Batch(rewrites, checked, publish(table, checked, run, earlier=earlier), candidate.staged)


def _proven(
    log: RunLog, table: OpenTable, base: Snapshot, part: OpenPlan, *,
    run: Run, workers: _Workers, written: list[str],
) -> tuple[Rewrites, Candidate, Proven | Mismatch | Conflicted] | None:  # fmt: skip
    """The part rewritten, staged and judged. `written` gets the names of files that nothing refers to, as they are
    known: what raises may leave them behind."""
    with log.stage("rewrite"):
        rewrites = execute(table, part, run, mapper=workers.mapper, exchange=workers.exchange)
    written += [name for rewrite in rewrites for name in rewrite.outputs]
    if part.rows is not None and not any(rewrite.rows_marked for rewrite in rewrites):
        return None
    with log.stage("verify"):
        candidate = table.stage(base, rewrites, run)
        if not candidate.units:
            return None
        written[:] = candidate.staged
        level = log.policy.settings.verify
        return rewrites, candidate, verify(table, part, rewrites, candidate, level=level, mapper=workers.mapper)


def _lost(table: OpenTable, part: OpenPlan, reason: str, written: Sequence[str]) -> Batch:
    """What a part becomes whose version is gone before anything of it was published."""
    table.discard(written)
    return Batch((), None, Conflicted(tuple((unit.key, reason) for unit in part.units)), tuple(written))
