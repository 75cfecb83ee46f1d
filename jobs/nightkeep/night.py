"""A group of tables, one after the other in one session; every table gets a document, whatever happens to it.

What is published is checked at once, in the same session. Its document is stored before the check and again after it:
if the process dies in between, the stored one says `not_run`, and whoever comes next checks: a retry of the care,
which finds its commit, or `check_group`. A check that broke is done again in the same way; one that judged is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nightkeep.care import Order, care, failed
from nightkeep.engine import Engine
from nightkeep.errors import UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.opinion import second_opinion
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile
from nightkeep.report import CheckStatus, Expectations, RunDocument, plan_text, read_history, store
from nightkeep.sweep.order import Mode
from nightkeep.upkeep import UpkeepOrder, awaits_judging, judged, upkeep
from nightkeep.upkeep import failed as upkeep_failed

_log = logging.getLogger(__name__)

UNFINISHED = "published, but its check did not finish: "
"""What the reason of a document begins with whose check was ended by a surprise."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one session is asked to do. The run id of a table is `prefix:table`, the same in every retry."""

    policy: PolicyFile
    tables: tuple[str, ...]
    prefix: str
    reports: str
    said: Overrides = field(default_factory=Overrides)
    dry_run: bool = False

    def effective(self, table: str) -> EffectivePolicy:
        """The table's policy with what was said on top. Raises UsageError."""
        found = self.policy.effective(table)
        return replace(found, settings=self.said.over(found.settings))


@dataclass(frozen=True, slots=True)
class Reported:
    """One document and where it is stored."""

    document: RunDocument
    path: Path

    def to_json(self) -> dict[str, object]:
        found = self.document
        return {
            "table": found.table, "operation": found.operation, "outcome": found.outcome, "reason": found.reason,
            "committed_version": found.committed_version, "document": str(self.path),
        }  # fmt: skip


def care_for_group(group: Group, operations: Sequence[Operation], engine: Engine) -> Iterator[Reported]:
    """Each table's operations in turn, checked: these, else what its policy asks for, else what suits its format.

    Raises UsageError only before any table was worked on.
    """
    policies = [group.effective(table) for table in group.tables]
    for policy in policies:
        group.said.require_use(operations or policy.operations)
    for policy in policies:
        for operation in operations or policy.operations:
            order = Order(operation, f"{group.prefix}:{policy.address.name}", group.reports, group.dry_run)
            document = _care(policy, order, engine)
            _log.info("plan of %s", plan_text(document))
            yield _checked(document, policy, group.reports, engine=engine)


def check_group(group: Group, engine: Engine) -> Iterator[Reported]:
    """A second opinion on whatever this run published and no check has judged, per table; every document of the run."""
    for table in group.tables:
        policy = group.effective(table)
        run_id = f"{group.prefix}:{policy.address.name}"
        for document in read_history(group.reports, policy.address.name).documents:
            if document.run_id == run_id:
                yield _checked(document, policy, group.reports, engine=engine)


def sweep_group(group: Group, engine: Engine) -> Iterator[Reported]:
    """Each table's old versions, where its policy lets them go, then its orphans; what is left is checked each time.

    Raises UsageError only before any table was worked on.
    """
    policies = [group.effective(table) for table in group.tables]
    for policy in policies:
        wanted = (Operation.EXPIRE, Operation.SWEEP) if policy.settings.expire.enabled else (Operation.SWEEP,)
        for operation in wanted:
            order = UpkeepOrder(
                operation=operation, run_id=f"{group.prefix}:{policy.address.name}", reports=group.reports,
                mode=Mode.DRY_RUN if group.dry_run else None,
            )  # fmt: skip
            yield _upkept(policy, order, engine)


def _upkept(policy: EffectivePolicy, order: UpkeepOrder, engine: Engine) -> Reported:
    table = policy.address.name
    document = _or_failed(
        lambda: upkeep(policy, order, engine=engine), lambda reason: upkeep_failed(policy, order, reason), table
    )
    stored = _stored(document, order.reports)
    if not order.checked(policy) or not awaits_judging(document):
        return stored

    def surprised(reason: str) -> RunDocument:
        return replace(document, outcome=Outcome.FAILED, reason=f"{UNFINISHED}{reason}")

    return _stored(_or_failed(lambda: judged(document, policy, order, engine=engine), surprised, table), order.reports)


def _care(policy: EffectivePolicy, order: Order, engine: Engine) -> RunDocument:
    def surprised(reason: str) -> RunDocument:
        return failed(policy, order, reason)

    return _or_failed(
        lambda: care(policy, order, mapper=engine.mapper, exchange=engine.exchange), surprised, policy.address.name
    )


def _checked(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> Reported:
    stored = _stored(document, reports)
    if not document.awaits_check:
        return stored
    if not policy.settings.check.enabled:
        off = Expectations(CheckStatus.SKIPPED, reason="the policy turns the check off")
        return _stored(replace(document, expectations=off), reports)
    return _stored(_check(document, policy, reports, engine=engine), reports)


def _check(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    def surprised(reason: str) -> RunDocument:
        return replace(document, outcome=Outcome.FAILED, reason=f"{UNFINISHED}{reason}")

    # What an earlier try of the check said is not to outlive it.
    reason = None if (document.reason or "").startswith(UNFINISHED) else document.reason
    cared = replace(document, reason=reason)
    return _or_failed(lambda: second_opinion(cared, policy, reports, engine=engine), surprised, document.table)


def _or_failed(work: Callable[[], RunDocument], surprised: Callable[[str], RunDocument], table: str) -> RunDocument:
    """The one place that catches everything: a bug met in one table must not cost the others their night."""
    try:
        return work()
    except UsageError as failure:
        return surprised(str(failure))
    except Exception as failure:  # noqa: BLE001 -- see above
        _log.exception("%s failed", table)
        return surprised(f"{type(failure).__name__}: {failure}")


def _stored(document: RunDocument, reports: str) -> Reported:
    return Reported(document, store(document, reports))
