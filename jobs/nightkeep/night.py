"""A group of tables, one after the other in one session; every table gets a document, whatever happens to it."""

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
from nightkeep.report import RunDocument, load_history, plan_text, store

_log = logging.getLogger(__name__)


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
    """Each table's operations in turn: these, else what its policy asks for, else what suits its format.

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
            yield _stored(document, group.reports)


def check_group(group: Group, engine: Engine) -> Iterator[Reported]:
    """A second opinion on whatever this run published, per table; its documents are written again."""
    for table in group.tables:
        policy = group.effective(table)
        run_id = f"{group.prefix}:{policy.address.name}"
        for document in load_history(group.reports, policy.address.name):
            if document.run_id == run_id:
                yield _stored(_check(document, policy, group.reports, engine=engine), group.reports)


def _care(policy: EffectivePolicy, order: Order, engine: Engine) -> RunDocument:
    def surprised(reason: str) -> RunDocument:
        return failed(policy, order, reason)

    return _or_failed(
        lambda: care(policy, order, mapper=engine.mapper, exchange=engine.exchange), surprised, policy.address.name
    )


def _check(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    if document.committed_version is None or not policy.settings.check.enabled:
        return document

    def surprised(reason: str) -> RunDocument:
        unfinished = f"published, but its check did not finish: {reason}"
        return replace(document, outcome=Outcome.FAILED, reason=unfinished)

    return _or_failed(lambda: second_opinion(document, policy, reports, engine=engine), surprised, document.table)


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
