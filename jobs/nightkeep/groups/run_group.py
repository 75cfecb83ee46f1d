"""A group of tables -> a document for each, one table after the other in one session.

A published version is checked at once, in the same session. Its document is stored before the check and again after
it. If the process dies in between, the stored document says `not_run`, and the next process checks: a retry of the run,
which finds its commit, or `check_group`. A check that failed to run is repeated in the same way; a finished one is not.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from nightkeep.checking.post_commit_check import check_after_commit
from nightkeep.errors import DEBUG, NightkeepError, UsageError, failure_text
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.checks_behind import ChecksBehind
from nightkeep.groups.child_process import ChildProcess
from nightkeep.groups.crashed_table import DIED, end_after_crash
from nightkeep.groups.stored_document import PERMANENT, StoredDocument
from nightkeep.groups.table_group import UNFINISHED, TableGroup, Unusable
from nightkeep.model import Operation, Outcome, Run
from nightkeep.policy import EffectivePolicy, format_of, suited
from nightkeep.reports import CheckStatus, Expectations, RunDocument, plan_text, read_history, store_or_say
from nightkeep.retention import RetentionOrder, apply_order, awaits_check, check_after_removal, read_metadata
from nightkeep.retention import failed_retention as upkeep_failed
from nightkeep.retention.orphans.sweep_request import SweepMode
from nightkeep.running.planned_work import Reader, Reading
from nightkeep.running.run_operation import RunOrder, failed_run, published_earlier, read_table, run_operation
from nightkeep.running.software_versions import versions
from nightkeep.running.suited_operations import suited_operations
from nightkeep.spark.engine import Engine, beside

__all__ = [
    "PERMANENT",
    "UNFINISHED",
    "StoredDocument",
    "TableGroup",
    "check_group",
    "check_table",
    "run_group",
    "run_table",
    "sweep_group",
]  # fmt: skip
T = TypeVar("T")

_log = logging.getLogger(__name__)


def run_group(group: TableGroup, operations: Sequence[Operation], engine: Engine) -> Iterator[StoredDocument]:
    """Run and check the operations of each table: `operations`, else those of its policy, else those of its format.

    Raises UsageError, before work on any table, for options that are wrong for all of them.
    """
    policies = group.policies()
    with ChildProcess() as apart, ChecksBehind[StoredDocument]() as checks:
        chosen = {
            table: (operations or policy.operations)[:1] if policy.uncovered else operations or _suited(apart, policy)
            for table, policy in policies.items() if isinstance(policy, EffectivePolicy)
        }  # fmt: skip
        for each in chosen.values():
            group.said.require_use(each)
        reader = _reader(apart)
        for table, policy in policies.items():
            group.take(table)
            if isinstance(policy, Unusable):
                checks.put(table, [_stored(_unusable(group, table, policy.why, operations), group.reports)])
                continue
            if table in group.died:
                checks.put(table, _cared_at_death(group, policy, chosen[table], apart))
                continue
            for operation in chosen[table]:
                # A failed check puts the table on hold, before its next operation begins.
                yield from checks.until(table)
                order = RunOrder(
                    operation, group.run_id(policy.address.name), group.reports, group.dry_run, named=bool(operations),
                    night=group.night.get(table), asked=group.said.asked(),
                )  # fmt: skip
                document = _care(policy, order, engine, reader)
                _log.info("plan of %s", plan_text(document))
                if document.awaits_check and policy.settings.check.enabled:
                    _stored(document, group.reports)
                    checks.add(table, partial(_checked, document, policy, group.reports, engine=beside(engine)))
                else:
                    checks.put(table, [_checked(document, policy, group.reports, engine=engine)])
                yield from checks.finished()
        yield from checks.rest()


def check_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Check every version of this run that no check has judged yet; yields every document of the run, table by table.

    Commits that no document names, because the process died before, are looked up in the table itself.
    """
    with ChildProcess() as apart:
        for table, policy in group.policies().items():
            group.take(table)
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
                    yield _checked(document, policy, group.reports, engine=engine)
                elif document.awaits_check:
                    ended = replace(document, outcome=Outcome.FAILED, reason=f"{UNFINISHED}{why}")
                    yield _stored(ended, group.reports)


def sweep_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Expire each table, if its policy says so, then sweep it. The table is checked after each."""
    with ChildProcess() as apart:
        for table, policy in group.policies().items():
            group.take(table)
            if isinstance(policy, Unusable):
                yield _stored(_unusable(group, table, policy.why, (Operation.SWEEP,)), group.reports)
                continue
            upkeep = (Operation.EXPIRE, Operation.SWEEP) if policy.settings.expire.enabled else (Operation.SWEEP,)
            if table in group.died:
                yield from _swept_at_death(group, policy, upkeep)
                continue
            for operation in upkeep:
                order = _upkeep_order(group, policy, operation)
                yield _upkept(
                    policy, order, engine, partial(_away, apart, policy, partial(read_metadata, policy, order))
                )


def _cared_at_death(
    group: TableGroup, policy: EffectivePolicy, operations: Sequence[Operation], apart: ChildProcess
) -> Iterator[StoredDocument]:
    name, reports = policy.address.name, group.reports
    _tell_commits(policy, group.run_id(name), reports, apart)
    for document in end_after_crash(
        name, group.run_id(name), reports, operations,
        awaits=lambda last: last.awaits_check and policy.settings.check.enabled,
        failed=lambda operation, why: failed_run(policy, RunOrder(operation, group.run_id(name), reports), why),
    ):  # fmt: skip
        yield _stored(document, reports)


def _swept_at_death(
    group: TableGroup, policy: EffectivePolicy, operations: Sequence[Operation]
) -> Iterator[StoredDocument]:
    name, reports = policy.address.name, group.reports
    for document in end_after_crash(
        name, group.run_id(name), reports, operations,
        awaits=lambda last: policy.settings.check.enabled and awaits_check(last),
        failed=lambda operation, why: upkeep_failed(policy, _upkeep_order(group, policy, operation), why),
    ):  # fmt: skip
        yield _stored(document, reports)


def _upkeep_order(group: TableGroup, policy: EffectivePolicy, operation: Operation) -> RetentionOrder:
    return RetentionOrder(
        operation=operation, run_id=group.run_id(policy.address.name), reports=group.reports,
        mode=SweepMode.DRY_RUN if group.dry_run else None,
    )  # fmt: skip


def _unusable(group: TableGroup, table: str, why: str, operations: Sequence[Operation]) -> RunDocument:
    """The document of a table without a policy, for the first operation that was asked for."""
    formats = {entry.name: entry.format for entry in group.policy.unusable}
    kind, now = formats.get(table, format_of(table)), datetime.now(UTC)
    first = (*operations, *suited(kind))[0]
    return RunDocument(
        run_id=group.run_id(table), table=table, format=kind, operation=first, outcome=Outcome.FAILED, reason=why,
        started_at=now, finished_at=now, versions=versions(), extra={PERMANENT: True},
    )  # fmt: skip


def _tell_commits(policy: EffectivePolicy, run_id: str, reports: str, apart: ChildProcess) -> None:
    # If the table cannot be read now, its documents are still returned.
    with suppress(NightkeepError, OSError):
        for commits in _away(apart, policy, partial(_commits_of, policy, run_id, reports)):
            _stored(commits, reports)


def _commits_of(policy: EffectivePolicy, run_id: str, reports: str) -> list[RunDocument]:
    """The documents of the commits of this run that the table itself has."""
    documents: list[RunDocument | None] = []
    for operation in Operation:
        with suppress(NightkeepError, OSError):
            documents += [published_earlier(policy, RunOrder(operation, run_id, reports))] if operation.rewrites else []
    return [document for document in documents if document is not None]


def _reader(apart: ChildProcess) -> Reader:
    def reader(policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
        return _away(apart, policy, partial(read_table, policy, order, run, plans=plans))

    return reader


def _away(apart: ChildProcess, policy: EffectivePolicy, work: Callable[[], T]) -> T:
    """Run `work` in the child process, as the table's metadata may kill its reader. Raises what `ChildProcess.call`
    raises."""
    here = policy.address.format in OF_ONE_PROCESS
    return work() if here else apart.call(policy.address.name, work)


def _suited(apart: ChildProcess, policy: EffectivePolicy) -> Sequence[Operation]:
    try:
        return _away(apart, policy, partial(suited_operations, policy))
    except NightkeepError:
        return policy.operations[:1]


def _upkept(
    policy: EffectivePolicy, order: RetentionOrder, engine: Engine, first: Callable[[], None]
) -> StoredDocument:
    table = policy.address.name
    document = _or_failed(
        lambda: apply_order(policy, order, engine=engine, first=first),
        lambda reason: upkeep_failed(policy, order, reason),
        table,
    )
    stored = _stored(document, order.reports)
    if not order.checked(policy) or not awaits_check(document):
        return stored

    def surprised(reason: str) -> RunDocument:
        return replace(document, outcome=Outcome.FAILED, reason=f"{UNFINISHED}{reason}")

    return _stored(
        _or_failed(lambda: check_after_removal(document, policy, order, engine=engine), surprised, table), order.reports
    )


def _care(policy: EffectivePolicy, order: RunOrder, engine: Engine, reader: Reader) -> RunDocument:
    try:
        return run_table(policy, order, engine, reader=reader)
    except UsageError as failure:
        return _permanent(failed_run(policy, order, str(failure)))


def run_table(policy: EffectivePolicy, order: RunOrder, engine: Engine, *, reader: Reader = read_table) -> RunDocument:
    """Run one operation on one table. Checks and stores nothing. Raises UsageError for an invalid request."""
    return _no_surprise(
        lambda: run_operation(policy, order, mapper=engine.mapper, exchange=engine.exchange, reader=reader),
        lambda reason: failed_run(policy, order, reason), policy.address.name,
    )  # fmt: skip


def _checked(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> StoredDocument:
    stored = _stored(document, reports)
    if not document.awaits_check:
        return stored
    if not policy.settings.check.enabled:
        off = Expectations(CheckStatus.SKIPPED, reason="the policy turns the check off")
        return _stored(replace(document, expectations=off), reports)
    return _stored(check_table(document, policy, reports, engine=engine), reports)


def check_table(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    """The document with the check of its versions, or with the unexpected failure of that check. Stores nothing."""

    def surprised(reason: str) -> RunDocument:
        return replace(document, outcome=Outcome.FAILED, reason=f"{UNFINISHED}{reason}")

    # Drop the reason that an earlier, unfinished try of the check left.
    reason = None if (document.reason or "").startswith(UNFINISHED) else document.reason
    cared = replace(document, reason=reason)
    return _or_failed(lambda: check_after_commit(cared, policy, reports, engine=engine), surprised, document.table)


def _or_failed(work: Callable[[], RunDocument], surprised: Callable[[str], RunDocument], table: str) -> RunDocument:
    try:
        return _no_surprise(work, surprised, table)
    except UsageError as failure:
        return _permanent(surprised(str(failure)))


def _no_surprise(work: Callable[[], RunDocument], surprised: Callable[[str], RunDocument], table: str) -> RunDocument:
    """The only place that catches every exception: a bug in the work on one table must not stop the others."""
    try:
        return work()
    except UsageError:
        raise
    except Exception as failure:  # noqa: BLE001 -- see above
        _log.error("%s: %s", table, failure_text(failure), exc_info=bool(os.environ.get(DEBUG)))
        return surprised(failure_text(failure))


def _permanent(document: RunDocument) -> RunDocument:
    return replace(document, extra={**document.extra, PERMANENT: True})


def _stored(document: RunDocument, reports: str) -> StoredDocument:
    return StoredDocument(*store_or_say(document, reports))
