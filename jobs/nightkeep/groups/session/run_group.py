"""A group of tables -> a document for each operation on each, several tables side by side in one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nightkeep.admission.order import AuditOptions, AuditShare, Order
from nightkeep.admission.suited_operations import suited_operations
from nightkeep.errors import NeedsSession, NightkeepError, UsageError
from nightkeep.groups.children.child_process import ChildProcesses
from nightkeep.groups.one_operation import log_plan, run_one, stored
from nightkeep.groups.reads import Reads, SessionBytes
from nightkeep.groups.session.after_crash import end_after_crash, store_found_commits
from nightkeep.groups.session.left_checks import check_lately_left
from nightkeep.groups.session.side_by_side import SharedTime, most_at_once, side_by_side
from nightkeep.groups.session.table_group import TableGroup, Unusable
from nightkeep.groups.stored_document import StoredDocument, permanent
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.records import last_seconds
from nightkeep.running.ended_early import failed
from nightkeep.spark.engine import Engine, beside

Chosen = Callable[[EffectivePolicy, Reads], Sequence[Operation]]
"""The operations on a table, in order."""


def run_group(group: TableGroup, operations: Sequence[Operation], engine: Engine) -> Iterator[StoredDocument]:
    """Run and check the operations of each table: `operations`, else those of its policy, else those of its format.
    Without `operations`, checks that earlier runs of a table left are done before.

    Several tables are at work at once, those first that took longest last time. Raises UsageError, before work on any
    table, for options that are wrong for all of them.
    """
    return _worked(group, engine, partial(_rewrites, operations), named=tuple(operations))


def sweep_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Expire each table, if its policy asks for it, then sweep it, one table after the other."""
    return _worked(group, engine, _removals, named=(Operation.SWEEP,), count=1)


def _worked(
    group: TableGroup, engine: Engine, chosen: Chosen, *, named: tuple[Operation, ...], count: int | None = None
) -> Iterator[StoredDocument]:
    policies = group.policies()
    count = count or (1 if group.one_by_one else max(1, min(len(policies), most_at_once())))
    with ChildProcesses(min(count, os.cpu_count() or 1)) as apart:
        reads = Reads(engine, apart, SessionBytes(len(policies)))
        if group.overrides.clusters:
            for policy in policies.values():
                if isinstance(policy, EffectivePolicy):
                    group.overrides.require_use(chosen(policy, reads))
        yield from side_by_side(
            tuple(policies),
            _OneTable(group, policies, chosen, named, reads, SharedTime()),
            [engine] if count == 1 else [beside(engine) for _ in range(count)],
            first=partial(_begins_first, group),
            at_work=group.take,
            goes_on=group.goes_on,
        )


@dataclass(frozen=True, slots=True)
class _OneTable:
    """The work on one table of a group: its operations in order, each with its check."""

    group: TableGroup
    policies: Mapping[str, EffectivePolicy | Unusable]
    chosen: Chosen
    named: tuple[Operation, ...]
    reads: Reads
    time: SharedTime

    def __call__(self, table: str, engine: Engine) -> list[StoredDocument]:
        """The documents of a table; none where it is left for a session."""
        try:
            return self._worked(table, engine)
        except NeedsSession:
            return []

    def _worked(self, table: str, engine: Engine) -> list[StoredDocument]:
        group, policy = self.group, self.policies[table]
        if isinstance(policy, Unusable):
            return [stored(group.unusable(table, policy.why, self.named), group.reports)]
        place = group.night.get(table)
        if place is not None and not place.taken:
            # One document states why, and the table is not opened to learn what suits it.
            operations: Sequence[Operation] = (self.named or policy.operations)[:1]
        else:
            operations = self.chosen(policy, self.reads)
        orders = [self._order(policy, operation) for operation in operations]
        if table in group.died:
            if orders[0].operation.rewrites:
                store_found_commits(policy, orders[0].run_id, group.reports, self.reads)
            return [stored(document, group.reports) for document in end_after_crash(policy, orders)]
        # A failed check puts the table on hold, before its next operation begins.
        return [*self._left(policy, engine), *(self._run(policy, order, engine) for order in orders)]

    def _left(self, policy: EffectivePolicy, engine: Engine) -> list[StoredDocument]:
        """The documents of earlier runs whose check is done now. Only a night does so: it names no operation."""
        group = self.group
        if self.named or group.dry_run:
            return []
        with self.time.at_work():
            reads = replace(self.reads, engine=engine)
            return [*check_lately_left(policy, group.reports, group.run_id(policy.address.name), reads)]

    def _order(self, policy: EffectivePolicy, operation: Operation) -> Order:
        group, name = self.group, policy.address.name
        return group.call.order(
            operation,
            group.run_id(name),
            group.reports,
            dry_run=group.dry_run,
            named=operation in self.named,
            night=group.night.get(name),
            audit=_audit_options(group),
            asked={**group.overrides.asked(), **group.call.asked},
            expected_plan=group.expected_plan,
        )

    def _run(self, policy: EffectivePolicy, order: Order, engine: Engine) -> StoredDocument:
        try:
            with self.time.at_work() as share:
                return run_one(policy, order, engine, self.reads, share=share)
        except UsageError as failure:
            document = permanent(failed(policy, order, str(failure)))
            log_plan(document)
            return stored(document, order.reports)


def _begins_first(group: TableGroup, table: str) -> float:
    """How early a table begins, the largest value first: those that took longest last time. Where audits share a
    budget, the order of the group, which has those first that were not audited for longest."""
    if group.policy.audit_budget is not None:
        return -group.tables.index(table)
    return last_seconds(group.reports, table)


def _audit_options(group: TableGroup) -> AuditOptions:
    budget = group.policy.audit_budget
    return AuditOptions(share=None if budget is None else AuditShare(group.prefix, budget))


def _rewrites(named: Sequence[Operation], policy: EffectivePolicy, reads: Reads) -> Sequence[Operation]:
    if policy.uncovered:
        return (named or policy.operations)[:1]
    try:
        return named or reads.call(policy, partial(suited_operations, policy))
    except NightkeepError:
        return policy.operations[:1]


def _removals(policy: EffectivePolicy, _: Reads) -> Sequence[Operation]:
    return (Operation.EXPIRE, Operation.SWEEP) if policy.settings.expire.enabled else (Operation.SWEEP,)
