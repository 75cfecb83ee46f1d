"""One operation on one table: policy -> plan -> rewrite -> gate -> publish -> the document of the run.

Expected endings are outcomes in the document. Only errors that the caller must correct are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nightkeep.admission.reasons import Act, Case, case_of, reason_to_skip, reason_to_stay_closed
from nightkeep.admission.run_ids import begun, require_same
from nightkeep.errors import STOPS, EvidenceError, NotCreated, RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Candidate, Committed, Conflicted, Mismatch, Outcome, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot, Watch, Wide
from nightkeep.records import PlanSection, RunDocument, Verification, secure
from nightkeep.running import run_outcomes
from nightkeep.running.interrupted_run import say_interrupted, unfinished_reason
from nightkeep.running.planned_work import PlannedWork, Reader, Reading, new_attempt, run_of
from nightkeep.running.planning import metrics_of, plan_table
from nightkeep.running.run_failures import as_stored_before, failed_document
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
)
from nightkeep.running.undone_deletes import hold_if_undone, undone_facts
from nightkeep.running.unpublished_files import removing_unpublished
from nightkeep.stages.base_version import replaced
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import batches
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.surprises import guarded
from nightkeep.tasks import Exchange, Mapper, inline_exchange

__all__ = ["RunOrder", "failed_run", "read_opened", "read_table", "run_operation"]


@dataclass(frozen=True, slots=True)
class _Workers:
    """Where tasks run."""

    mapper: Mapper
    exchange: Exchange


def read_table(policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
    """Open the table, and plan unless this run has published something of it already. Reads metadata only.

    Raises what reading and planning raise.
    """
    return read_opened(open_table(policy.address), policy, order, run, plans=plans)


def read_opened(table: OpenTable, policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
    """As `read_table`, of an opened table."""
    # Look for this run's commits before anything can skip the table: they still need a check and a report.
    earlier = _own_commits(order, table, run)
    if earlier or not plans:
        return Reading(table, earlier)
    try:
        return Reading(table, planned=plan_table(policy, order, table, run))
    except RefusedTable:
        late = _own_commits(order, table, run)
        if not late:
            raise
        return Reading(table, late)


def run_operation(
    policy: EffectivePolicy,
    order: RunOrder,
    *,
    mapper: Callable[[], Mapper],
    exchange: Callable[[], Exchange] = lambda: inline_exchange,
    reader: Reader = read_table,
) -> RunDocument:
    """Run one operation on one table. `mapper` and `exchange` are called only when there is work, as starting
    Spark costs seconds. `reader` does what `read_table` does, wherever it does it.

    Raises UsageError for a request that cannot be understood, and bugs, unless a version was published. Everything else
    ends in the document.
    """
    log = RunLog(policy, order)
    case = case_of(policy, order.operation, order.reports, log.started, left_out=order.left_out)
    closed = reason_to_stay_closed(replace(case, act=Act.PLAN) if order.dry_run else case)
    if closed is not None:
        return log.document(Outcome.SKIPPED, closed)
    try:
        return guarded(
            lambda: _care(log, case, reader, lambda: _Workers(mapper(), exchange())),
            partial(failed_document, log),
            policy.address.name,
        )
    except STOPS as stop:
        say_interrupted(log, stop)
        raise


def failed_run(policy: EffectivePolicy, order: RunOrder, reason: str) -> RunDocument:
    """The document of an operation that ended by an unexpected failure."""
    log = RunLog(policy, order)
    return as_stored_before(log, log.document(Outcome.FAILED, reason))


def published_earlier(policy: EffectivePolicy, order: RunOrder) -> RunDocument | None:
    """The document of the commits that this run has already published, or None. Reads metadata only."""
    table = open_table(policy.address)
    done = table.commits.committed(run_of(order))
    return run_outcomes.published_document(RunLog(policy, order), table, done) if done else None


def _care(log: RunLog, case: Case, reader: Reader, workers: Callable[[], _Workers]) -> RunDocument:
    order, run, name = log.order, run_of(log.order), log.policy.address.name
    waiting = reason_to_skip(case)
    if order.left_out and not order.dry_run and not begun(order, name):
        # The night has opened it once, for its place.
        return log.document(Outcome.SKIPPED, waiting)
    reading = reader(log.policy, order, run, plans=order.dry_run or not waiting)
    require_same(order, name, published=bool(reading.published))
    if reading.published:
        return run_outcomes.published_document(log, reading.table, reading.published)
    if waiting and not order.dry_run:
        return log.document(Outcome.SKIPPED, waiting)
    if reading.planned is None:
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    try:
        document = _as_planned(log, reading.table, reading.planned, run, workers, case=case)
    except RefusedTable:
        late = _own_commits(order, reading.table, run)
        if not late:
            raise
        return run_outcomes.published_document(log, reading.table, late)
    if document.outcome not in (Outcome.UNCHANGED, Outcome.CONFLICTED) or document.commits:
        return document
    # A commit of an earlier attempt may have become visible after the first look; then nothing was left to do.
    late = _own_commits(order, reading.table, run)
    return run_outcomes.published_document(log, reading.table, late) if late else document


def _own_commits(order: RunOrder, table: OpenTable, run: Run) -> Sequence[Committed]:
    """The commits that this run has already published. Empty for a dry run, which does not look for any."""
    return () if order.dry_run else table.commits.committed(run)


def _as_planned(
    log: RunLog, table: OpenTable, planned: PlannedWork, run: Run, workers: Callable[[], _Workers], *, case: Case
) -> RunDocument:
    base, proposed = planned.base, planned.plan
    log.seconds["plan"] = planned.seconds
    waiting = reason_to_skip(replace(case, opened=planned.opened))
    if waiting is not None:
        proposed = replace(proposed, notes=(*proposed.notes, f"a run would be skipped now: {waiting}"))
    log.facts |= {
        "base_version": base.version,
        "table_id": table.described(base).id,
        "base_identity": str(base.identity),
        "plan": PlanSection.of(proposed, planned.request.clustering),
        "metrics": sizes(base.sizes, None, metrics_of(planned)),
    }
    if planned.watch is not None and (undone := _undone(log, table, planned.watch)):
        return undone
    if not proposed.units:
        return log.document(Outcome.UNCHANGED, "; ".join(("nothing to do", *proposed.notes)))
    if waiting is not None and not log.order.dry_run:
        return log.document(Outcome.SKIPPED, waiting)
    if log.order.dry_run:
        return _dry_run(log, table, proposed, workers)
    return _work(log, table, base, proposed, run=run, workers=workers())


def _dry_run(log: RunLog, table: OpenTable, planned: OpenPlan, workers: Callable[[], _Workers]) -> RunDocument:
    """The document of a dry run. For a change of rows, data files are read to count the rows that match."""
    if planned.rows is None or table.row_changes is None:
        return log.document(Outcome.SKIPPED, "dry run: this is the plan, nothing was changed")
    tasks = [task for unit in planned.units for task in unit.tasks if not isinstance(task, Wide)]
    rows = sum(workers().mapper(table.row_changes.count_matching, tasks, label="count"))
    done = "updated" if planned.sets else "hidden"
    reason = f"dry run: {rows:,} rows that the condition selects would be {done}, nothing was changed"
    return log.document(Outcome.SKIPPED, reason, extra={"matching_rows": rows})


def _undone(log: RunLog, table: OpenTable, watch: Watch) -> RunDocument | None:
    """The document if another writer undid deletes, else None. Except in a dry run, the table is then put on hold."""
    dry_run = log.order.dry_run
    document = log.document(**undone_facts(table, watch, dry_run=dry_run)) if watch.undone else None
    if not dry_run:
        hold_if_undone(watch, document, reports=log.order.reports, table=log.policy.address.name)
    return document


def _work(
    log: RunLog, table: OpenTable, base: Snapshot, planned: OpenPlan, *, run: Run, workers: _Workers
) -> RunDocument:
    """Run each batch up to its own commit: if one batch ends early, the commits of the others remain."""
    ended: list[Batch] = []
    log.facts["units"] = unfinished(planned, ())
    secure(log.document(Outcome.FAILED, unfinished_reason(log.order.operation)), log.order.reports)
    for batch in batches(planned, log.policy.settings.commit_size):
        # File names derive from the attempt, and the files of the batch before are published under theirs.
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
            # A rewrite that changed rows may do so again, so the other batches wait until a person has looked.
            return run_outcomes.mismatch_document(log, ended)
        # A later batch may raise. The commits up to now still need a check and a report.
        results = tuple(unit for each in ended for unit in unit_results(each))
        log.facts |= {"units": (*results, *unfinished(planned, results)), **commits(published(ended))}
        log.publishes = False
        if any(each.undermined for each in published(ended)):
            return run_outcomes.undermined_document(log, table, published(ended), log.facts["units"])
    if not ended:
        why_not = "everything is as it should be" if planned.rows is None else "the condition selects no row"
        return log.document(Outcome.UNCHANGED, why_not, units=())
    return run_outcomes.end_run(log, table, base, ended, run, scope=planned.commit_scope)


def _batch(
    log: RunLog,
    table: OpenTable,
    base: Snapshot,
    part: OpenPlan,
    *,
    run: Run,
    workers: _Workers,
    earlier: Collection[int],
) -> Batch | None:
    """Rewrite, prove and publish one part of the plan; None if no row is to change, or if nothing would change."""
    lost, written = replaced(table, part.base), list[str]()
    if lost is not None:
        return _lost(table, part, lost, written)
    try:
        with removing_unpublished(table, run, earlier=earlier, after=Exception):
            proven = _proven(log, table, base, part, run=run, workers=workers, written=written)
    except (EvidenceError, OSError) as failure:
        # If the base version was removed meanwhile, its missing files do not mean that the table is damaged.
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
    log.committed = partial(table.commits.committed, run)
    log.publishes = True
    with log.stage("publish"), removing_unpublished(table, run, earlier=earlier, after=NotCreated):
        return Batch(rewrites, checked, publish(table, checked, run, earlier=earlier), candidate.staged)


def _proven(
    log: RunLog, table: OpenTable, base: Snapshot, part: OpenPlan, *, run: Run, workers: _Workers, written: list[str]
) -> tuple[Rewrites, Candidate, Proven | Mismatch | Conflicted] | None:
    """Rewrite, stage and verify the part. The names of unreferenced new files are added to `written` as soon as they
    are known, as an error may leave those files behind."""
    with log.stage("rewrite"):
        rewrites = execute(table, part, run, mapper=workers.mapper, exchange=workers.exchange)
    written += [name for rewrite in rewrites for name in rewrite.outputs]
    if part.rows is not None and not any(rewrite.rows_marked for rewrite in rewrites):
        return None
    with log.stage("verify"):
        candidate = table.commits.stage(base, rewrites, run)
        if not candidate.units:
            return None
        written[:] = candidate.staged
        level, memory = log.policy.settings.verify, log.policy.settings.task_memory
        checked = verify(table, part, rewrites, candidate, level=level, mapper=workers.mapper, task_bytes=memory)
        return rewrites, candidate, checked


def _lost(table: OpenTable, part: OpenPlan, reason: str, written: Sequence[str]) -> Batch:
    """The batch of a part whose base version disappeared before anything was published."""
    table.commits.discard(written)
    return Batch((), None, Conflicted(tuple((unit.key, reason) for unit in part.units)), tuple(written))
