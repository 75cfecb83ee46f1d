"""A group of tables -> a document for each, several tables side by side in one session.

A published version is checked at once, in the same session. Its document is stored before the check and again after
it. If the process dies in between, the stored document says `not_run`, and the next process checks: a retry of the run,
which finds its commit, or `check_group`. A check that failed to run is repeated in the same way; a finished one is not.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from nightkeep.admission.suited_operations import suited_operations
from nightkeep.errors import NightkeepError
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.cared_table import care_for, remove_checked, store_checked, stored
from nightkeep.groups.child_process import ChildProcess
from nightkeep.groups.child_processes import ChildProcesses
from nightkeep.groups.crashed_table import DIED, end_after_crash
from nightkeep.groups.session_bytes import SessionBytes
from nightkeep.groups.shared_time import SharedTime
from nightkeep.groups.side_by_side import most_at_once, side_by_side
from nightkeep.groups.stored_document import PERMANENT, StoredDocument
from nightkeep.groups.table_group import TableGroup, Unusable
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.pages import plan_text
from nightkeep.policy import EffectivePolicy, format_of, suited
from nightkeep.records import RunDocument, last_seconds, read_history
from nightkeep.records.after_commit import unfinished_check
from nightkeep.retention import RetentionOrder, failed_retention, policy_mode, read_metadata
from nightkeep.running.planned_work import Reading
from nightkeep.running.run_operation import RunOrder, failed_run, published_earlier, read_table
from nightkeep.running.software_versions import versions
from nightkeep.spark.engine import Engine, beside

__all__ = ["PERMANENT", "StoredDocument", "TableGroup", "check_group", "run_group", "sweep_group"]
T = TypeVar("T")

_log = logging.getLogger(__name__)


def run_group(group: TableGroup, operations: Sequence[Operation], engine: Engine) -> Iterator[StoredDocument]:
    """Run and check the operations of each table: `operations`, else those of its policy, else those of its format.

    Several tables are at work at once, those first that took longest last time. Raises UsageError, before work on any
    table, for options that are wrong for all of them.
    """
    policies = group.policies()
    count = 1 if group.one_by_one else max(1, min(len(policies), most_at_once()))
    with ChildProcesses(min(count, os.cpu_count() or 1)) as apart:
        if group.said.clusters:
            for policy in policies.values():
                if isinstance(policy, EffectivePolicy):
                    group.said.require_use(_operations(apart, policy, operations))
        reader = _Reader(apart, engine, SessionBytes(len(policies)))
        care = _Care(group, policies, tuple(operations), apart, reader, SharedTime())
        yield from side_by_side(
            tuple(policies),
            care,
            [beside(engine) for _ in range(count)],
            first=partial(last_seconds, group.reports),
            at_work=group.take,
            goes_on=group.goes_on,
        )


@dataclass(frozen=True, slots=True)
class _Care:
    """The work on one table of a group: its operations in order, each with its check."""

    group: TableGroup
    policies: Mapping[str, EffectivePolicy | Unusable]
    operations: tuple[Operation, ...]
    apart: ChildProcesses
    reader: _Reader
    time: SharedTime

    def __call__(self, table: str, engine: Engine) -> list[StoredDocument]:
        group, policy = self.group, self.policies[table]
        if isinstance(policy, Unusable):
            return [stored(_unusable(group, table, policy.why, self.operations), group.reports)]
        place = group.night.get(table)
        if place is not None and not place.taken:
            # One document tells of it, and the table is not opened to learn what suits it.
            chosen: Sequence[Operation] = (self.operations or policy.operations)[:1]
        else:
            chosen = _operations(self.apart, policy, self.operations)
        if table in group.died:
            _tell_commits(policy, group.run_id(policy.address.name), group.reports, self.apart)
            return [*_at_death(group, policy, chosen, partial(_failed_run, group, policy))]
        # A failed check puts the table on hold, before its next operation begins.
        return [self._done(policy, operation, engine) for operation in chosen]

    def _done(self, policy: EffectivePolicy, operation: Operation, engine: Engine) -> StoredDocument:
        group, name = self.group, policy.address.name
        order = RunOrder(
            operation,
            group.run_id(name),
            group.reports,
            group.dry_run,
            named=bool(self.operations),
            night=group.night.get(name),
            asked=group.said.asked(),
        )
        with self.time.at_work() as share:
            document = care_for(policy, order, engine, self.reader)
            _log.info("plan of %s", plan_text(document))
            return store_checked(document, policy, group.reports, engine=engine, share=share)


def _operations(apart: ChildProcesses, policy: EffectivePolicy, named: Sequence[Operation]) -> Sequence[Operation]:
    if policy.uncovered:
        return (named or policy.operations)[:1]
    return named or _suited(apart, policy)


def check_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Check every version of this run that no check has judged yet; yields every document of the run, table by table.

    Commits that no document names, because the process died before, are looked up in the table itself.
    """
    with ChildProcess() as apart:
        for table, policy in group.policies().items():
            group.take([table])
            name, why = table, DIED
            if isinstance(policy, Unusable):
                why = policy.why
            else:
                name = policy.address.name
                _tell_commits(policy, group.run_id(name), group.reports, apart)
            for document in read_history(group.reports, name).documents:
                if document.run_id != group.run_id(name):
                    continue
                if isinstance(policy, EffectivePolicy) and not (document.awaits_check and table in group.died):
                    yield store_checked(document, policy, group.reports, engine=engine)
                elif document.awaits_check:
                    yield stored(unfinished_check(document, why), group.reports)


def sweep_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Expire each table, if its policy says so, then sweep it. The table is checked after each."""
    with ChildProcess() as apart:
        for table, policy in group.policies().items():
            group.take([table])
            if isinstance(policy, Unusable):
                yield stored(_unusable(group, table, policy.why, (Operation.SWEEP,)), group.reports)
                continue
            upkeep = (Operation.EXPIRE, Operation.SWEEP) if policy.settings.expire.enabled else (Operation.SWEEP,)
            if table in group.died:
                yield from _at_death(group, policy, upkeep, partial(_failed_upkeep, group, policy))
                continue
            for operation in upkeep:
                order = _upkeep_order(group, policy, operation)
                first = partial(_away, apart, policy, partial(read_metadata, policy, order))
                yield remove_checked(policy, order, engine, first)


def _at_death(
    group: TableGroup,
    policy: EffectivePolicy,
    operations: Sequence[Operation],
    failed: Callable[[Operation, str], RunDocument],
) -> Iterator[StoredDocument]:
    """The documents of a table at which an earlier process died."""
    name, checks = policy.address.name, policy.settings.check.enabled
    run_id = group.run_id(name)
    for document in end_after_crash(name, run_id, group.reports, operations, checks=checks, failed=failed):
        yield stored(document, group.reports)


def _upkeep_order(group: TableGroup, policy: EffectivePolicy, operation: Operation) -> RetentionOrder:
    return RetentionOrder(
        operation=operation,
        run_id=group.run_id(policy.address.name),
        reports=group.reports,
        mode=SweepMode.DRY_RUN if group.dry_run else policy_mode(policy, operation),
    )


def _failed_run(group: TableGroup, policy: EffectivePolicy, operation: Operation, why: str) -> RunDocument:
    return failed_run(policy, RunOrder(operation, group.run_id(policy.address.name), group.reports), why)


def _failed_upkeep(group: TableGroup, policy: EffectivePolicy, operation: Operation, why: str) -> RunDocument:
    return failed_retention(policy, _upkeep_order(group, policy, operation), why)


def _unusable(group: TableGroup, table: str, why: str, operations: Sequence[Operation]) -> RunDocument:
    """The document of a table without a policy, for the first operation that was asked for."""
    formats = {entry.name: entry.format for entry in group.policy.unusable}
    kind, now = formats.get(table, format_of(table)), datetime.now(UTC)
    first = (*operations, *suited(kind))[0]
    return RunDocument(
        run_id=group.run_id(table),
        table=table,
        format=kind,
        operation=first,
        outcome=Outcome.FAILED,
        reason=why,
        started_at=now,
        finished_at=now,
        versions=versions(),
        extra={PERMANENT: True},
    )


def _tell_commits(policy: EffectivePolicy, run_id: str, reports: str, apart: ChildProcess | ChildProcesses) -> None:
    # If the table cannot be read now, its documents are still returned.
    with suppress(NightkeepError, OSError):
        for commits in _away(apart, policy, partial(_commits_of, policy, run_id, reports)):
            stored(commits, reports)


def _commits_of(policy: EffectivePolicy, run_id: str, reports: str) -> list[RunDocument]:
    """The documents of the commits of this run that the table itself has."""
    documents: list[RunDocument | None] = []
    for operation in Operation:
        with suppress(NightkeepError, OSError):
            documents += [published_earlier(policy, RunOrder(operation, run_id, reports))] if operation.rewrites else []
    return [document for document in documents if document is not None]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads tables in child processes, and tells the engine of the session how large its tables are."""

    apart: ChildProcesses
    engine: Engine
    size: SessionBytes

    def __call__(self, policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
        reading = _away(self.apart, policy, partial(read_table, policy, order, run, plans=plans))
        if reading.planned is not None:
            self.engine.stored_bytes = self.size.add(policy.address.name, sum(reading.planned.base.sizes.bytes))
        return reading


def _away(apart: ChildProcess | ChildProcesses, policy: EffectivePolicy, work: Callable[[], T]) -> T:
    """Run `work` in the child process, as the table's metadata may kill its reader. Raises what `ChildProcess.call`
    raises."""
    here = policy.address.format in OF_ONE_PROCESS
    return work() if here else apart.call(policy.address.name, work)


def _suited(apart: ChildProcesses, policy: EffectivePolicy) -> Sequence[Operation]:
    try:
        return _away(apart, policy, partial(suited_operations, policy))
    except NightkeepError:
        return policy.operations[:1]
