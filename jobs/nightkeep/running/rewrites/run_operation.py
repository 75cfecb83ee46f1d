"""One rewrite of one table: plan -> rewrite -> gate -> publish -> the document of the run.

Expected endings are outcomes in the document. Only errors that the caller must correct are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from nightkeep.admission.order import Order, new_attempt
from nightkeep.admission.reasons import Act, Case, reason_to_skip
from nightkeep.admission.run_ids import may_have_published, require_same
from nightkeep.errors import EvidenceError, NotCreated, OtherPlan, RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Candidate, Conflicted, Mismatch, Outcome, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot, Watch, Wide
from nightkeep.records import PlanSection, RunDocument, Verification
from nightkeep.running.carry_out import carry_out
from nightkeep.running.ended_early import store_unfinished
from nightkeep.running.plan_digest import digest_of_rewrite, require_expected
from nightkeep.running.rewrites import run_outcomes
from nightkeep.running.rewrites.planning import PlannedWork, metrics_of
from nightkeep.running.rewrites.run_summary import (
    Batch,
    Proven,
    Rewrites,
    published,
    run_metrics,
    share_of_rewrite,
    sizes,
    unfinished,
    unit_results,
    versions_of,
)
from nightkeep.running.rewrites.table_reading import TableReader, own_commits, read_table
from nightkeep.running.rewrites.undone_deletes import hold_if_undone, undone_facts
from nightkeep.running.rewrites.unpublished_files import removing_unpublished
from nightkeep.running.run_log import RunLog, commits
from nightkeep.stages.base_version import replaced
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import batches
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import Exchange, Mapper, inline_exchange


class LazyWorkers(Protocol):
    """Where tasks run. Asked for only when there is work, as starting Spark costs seconds. The Engine is one."""

    def mapper(self) -> Mapper: ...

    def exchange(self) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class _Given:
    """LazyWorkers of two functions."""

    mapper: Callable[[], Mapper]
    exchange: Callable[[], Exchange]


def run_operation(
    policy: EffectivePolicy,
    order: Order,
    *,
    mapper: Callable[[], Mapper],
    exchange: Callable[[], Exchange] = lambda: inline_exchange,
    reader: TableReader = read_table,
) -> RunDocument:
    """Carry out a rewrite, as `carry_out` does, with `rewrite` as its work."""
    return carry_out(policy, order, partial(rewrite, workers=_Given(mapper, exchange), reader=reader))


def published_earlier(policy: EffectivePolicy, order: Order) -> RunDocument | None:
    """The document of the commits that this run has already published, or None. Reads metadata only."""
    table = open_table(policy.address)
    done = table.commits.committed(order.attempt(policy.address.branch))
    return run_outcomes.published_document(RunLog(policy, order), table, done) if done else None


def rewrite(log: RunLog, case: Case, *, workers: LazyWorkers, reader: TableReader) -> RunDocument:
    """Plan, rewrite, prove and publish by the order. `reader` does what `read_table` does, wherever it does it."""
    order, run = log.order, log.order.attempt(log.policy.address.branch)
    waiting = reason_to_skip(case)
    if order.left_out and not order.dry_run and not may_have_published(order, log.table):
        # The night has opened it once, for its place.
        return log.document(Outcome.SKIPPED, waiting)
    reading = reader(log.policy, order, run, plans=order.dry_run or not waiting)
    require_same(order, log.policy, published=bool(reading.published))
    table, planned = reading.table, reading.planned
    if reading.published:
        return run_outcomes.published_document(log, table, reading.published)
    if waiting:
        return log.document(Outcome.SKIPPED, waiting)
    if planned is None:
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    try:
        document = _before_work(log, table, planned, case, workers) or _work(log, table, planned, run, workers)
    except (RefusedTable, OtherPlan):
        late = own_commits(order, table, run)
        if not late:
            raise
        return run_outcomes.published_document(log, table, late)
    if document.outcome not in (Outcome.UNCHANGED, Outcome.CONFLICTED) or document.commits:
        return document
    # A commit of an earlier attempt may have become visible after the first search for it; then nothing was left to do.
    late = own_commits(order, table, run)
    return run_outcomes.published_document(log, table, late) if late else document


def _before_work(
    log: RunLog, table: OpenTable, planned: PlannedWork, case: Case, workers: LazyWorkers
) -> RunDocument | None:
    """The document of a run that ends with its plan; None if there is work to do now."""
    base, proposed = planned.base, planned.plan
    log.seconds["plan"] = planned.seconds
    # A dry run states what work would be skipped for.
    waiting = reason_to_skip(replace(case, act=Act.WORK, opened=planned.opened))
    if waiting is not None:
        proposed = replace(proposed, notes=(*proposed.notes, f"a run would be skipped now: {waiting}"))
    log.facts |= {
        "base_version": base.version,
        "table_id": table.described(base).id,
        "base_identity": str(base.identity),
        "plan": PlanSection.of(proposed, planned.request.clustering),
        "metrics": sizes(base.sizes, None, metrics_of(planned)),
        "found_versions": planned.found,
    }
    if log.order.dry_run or log.order.expected_plan is not None:
        require_expected(log, digest_of_rewrite(log, base, planned.request, proposed))
    if planned.watch is not None and (undone := _undone(log, table, planned.watch)):
        return undone
    if not proposed.units:
        return log.document(Outcome.UNCHANGED, "; ".join(("nothing to do", *proposed.notes)))
    if waiting is not None and not log.order.dry_run:
        return log.document(Outcome.SKIPPED, waiting)
    return _dry_run(log, table, proposed, workers) if log.order.dry_run else None


def _dry_run(log: RunLog, table: OpenTable, planned: OpenPlan, workers: LazyWorkers) -> RunDocument:
    """The document of a dry run. For a change of rows, data files are read to count the rows that match."""
    if planned.rows is None or table.row_changes is None:
        return log.document(Outcome.SKIPPED, "dry run: this is the plan, nothing was changed")
    tasks = [task for unit in planned.units for task in unit.tasks if not isinstance(task, Wide)]
    rows = sum(workers.mapper()(table.row_changes.count_matching, tasks, label="count"))
    done = "updated" if planned.sets else "hidden"
    reason = f"dry run: {rows:,} rows that the condition selects would be {done}, nothing was changed"
    return log.document(Outcome.SKIPPED, reason, extra={"matching_rows": rows})


def _undone(log: RunLog, table: OpenTable, watch: Watch) -> RunDocument | None:
    """The document if another writer undid deletes, else None. Except in a dry run, the table is then put on hold."""
    dry_run = log.order.dry_run
    document = log.document(**undone_facts(table, watch, dry_run=dry_run)) if watch.undone else None
    if not dry_run:
        hold_if_undone(watch, document, reports=log.order.reports, table=log.table)
    return document


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the plan that is rewritten, proven and published together, by one attempt of the run. `earlier`: the
    versions that the parts before it published."""

    plan: OpenPlan
    run: Run
    earlier: Collection[int]


def _work(log: RunLog, table: OpenTable, planned: PlannedWork, run: Run, workers: LazyWorkers) -> RunDocument:
    """Run each batch up to its own commit: if one batch ends early, the commits of the others remain."""
    base, whole = planned.base, planned.plan
    mapper, exchange = workers.mapper(), workers.exchange()
    ended: list[Batch] = []
    log.facts["units"] = unfinished(whole, ())
    store_unfinished(log)
    for each in batches(whole, log.policy.settings.commit_size):
        # File names derive from the attempt, and the files of the batch before are published under theirs.
        part = _Part(each, replace(run, attempt=new_attempt()), versions_of(ended))
        done = _proven(log, table, base, part, mapper=mapper, exchange=exchange)
        if done is None:
            continue
        ended.append(_published(log, table, part, done))
        log.facts |= {
            "verification": Verification(log.policy.settings.verify, share_of_rewrite(log.seconds)),
            "metrics": run_metrics(log.facts["metrics"], ended[-1]),
        }
        if isinstance(ended[-1].checked, Mismatch):
            # A rewrite that changed rows may do so again, so the other batches wait until a person has looked.
            return run_outcomes.mismatch_document(log, ended)
        # A later batch may raise. The commits up to now still need a check and a report.
        results = tuple(unit for each in ended for unit in unit_results(each))
        log.facts |= {"units": (*results, *unfinished(whole, results)), **commits(published(ended))}
        log.publishes = False
        if any(each.undermined for each in published(ended)):
            return run_outcomes.undermined_document(log, table, published(ended), log.facts["units"])
    if not ended:
        why_not = "everything is as it should be" if whole.rows is None else "the condition selects no row"
        return log.document(Outcome.UNCHANGED, why_not, units=())
    return run_outcomes.end_run(log, table, base, ended, run, scope=whole.commit_scope)


def _proven(
    log: RunLog, table: OpenTable, base: Snapshot, part: _Part, *, mapper: Mapper, exchange: Exchange
) -> Batch | None:
    """Rewrite, stage and verify the part; None if no row is to change, or if nothing would change."""
    # The names of unreferenced new files, as soon as they are known, as an error may leave those files behind.
    lost, written = replaced(table, part.plan.base), list[str]()
    if lost is not None:
        return _lost(table, part, lost, written)
    try:
        with removing_unpublished(table, part.run, earlier=part.earlier, after=Exception):
            with log.stage("rewrite"):
                rewrites = execute(table, part.plan, part.run, mapper=mapper, exchange=exchange)
            written += [name for rewrite in rewrites for name in rewrite.outputs]
            if part.plan.rows is not None and not any(rewrite.rows_marked for rewrite in rewrites):
                return None
            with log.stage("verify"):
                candidate = table.commits.stage(base, rewrites, part.run)
                if not candidate.units:
                    return None
                written[:] = candidate.staged
                checked = _verified(log, table, part, rewrites, candidate, mapper)
    except (EvidenceError, OSError) as failure:
        # If the base version was removed meanwhile, its missing files do not mean that the table is damaged.
        lost = replaced(table, part.plan.base)
        if lost is None:
            raise
        return _lost(table, part, f"{lost}: {failure}", written)
    if isinstance(checked, Mismatch) and (lost := replaced(table, part.plan.base)) is not None:
        return _lost(table, part, lost, written)
    if isinstance(checked, Conflicted):
        return _lost(table, part, checked.units[0][1], written)
    return Batch(rewrites, checked, None, candidate.staged)


def _verified(
    log: RunLog, table: OpenTable, part: _Part, rewrites: Rewrites, candidate: Candidate, mapper: Mapper
) -> Proven | Mismatch | Conflicted:
    settings = log.policy.settings
    level, memory = settings.verify, settings.task_memory
    return verify(table, part.plan, rewrites, candidate, level=level, mapper=mapper, task_bytes=memory)


def _published(log: RunLog, table: OpenTable, part: _Part, batch: Batch) -> Batch:
    """The batch with its commit. One that is not proven, or lost its base version, is as it was."""
    if batch.checked is None or isinstance(batch.checked, Mismatch):
        return batch
    log.committed = partial(table.commits.committed, part.run)
    log.publishes = True
    with log.stage("publish"), removing_unpublished(table, part.run, earlier=part.earlier, after=NotCreated):
        return replace(batch, published=publish(table, batch.checked, part.run, earlier=part.earlier))


def _lost(table: OpenTable, part: _Part, reason: str, written: Sequence[str]) -> Batch:
    """The batch of a part whose base version disappeared before anything was published."""
    table.commits.discard(written)
    return Batch((), None, Conflicted(tuple((unit.key, reason) for unit in part.plan.units)), tuple(written))
