"""Policy -> what of it does not fit the table itself: columns, the partition filter, expectations, conditions.

Each setting is tried alone on a plan, so that several faults are found at once, each with the line that sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.past_metrics import PAST
from nightkeep.admission.suited_operations import suited_operations
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import Operation, Request
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.policy.when import could_hold, metrics_of
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.records import failure_outcome
from nightkeep.running.commits_since_run import SINCE_RUN
from nightkeep.running.rewrites.planning import request_of, require_expected_columns
from nightkeep.stages.plan import plan

_DEFAULT: Final = Settings()


@dataclass(frozen=True, slots=True)
class TableFaults:
    """Faults of the policy, a line each with file and line; `unread`: why the table itself could not be asked."""

    faults: tuple[str, ...] = ()
    unread: str | None = None


def table_faults(policy: EffectivePolicy) -> TableFaults:
    """What of the policy does not fit the table. Reads metadata only."""
    address, plain = policy.address, replace(policy, settings=_without_settings(policy.settings))
    try:
        table = open_table(address)
        if table.never_written():
            return TableFaults()
        base = table.snapshot() if table.outline is None else table.outline()
        operations = suited_operations(policy)
    except (NightkeepError, OSError) as failure:
        return TableFaults(unread=_sentence(failure, policy))
    case = _Case(plain, table, base, operations[0])
    unread = _failure(case.plan, policy)
    if unread is not None:
        return TableFaults(unread=unread)
    return TableFaults(tuple(_faults(policy, replace(case, operations=operations))))


@dataclass(frozen=True, slots=True)
class _Case:
    """A table to plan with a policy of which one setting at most is not the default."""

    policy: EffectivePolicy
    table: OpenTable
    base: Snapshot
    operation: Operation
    operations: tuple[Operation, ...] = ()

    def plan(self) -> None:
        require_expected_columns(self.policy, self.table, self.base)
        plan(self.table, self.base, self.request())

    def request(self) -> Request:
        order = Order(self.operation, "validate", reports="", dry_run=True)
        return request_of(self.policy, order, self.table, self.base, run=order.attempt())


def _faults(policy: EffectivePolicy, plain: _Case) -> Iterator[str]:
    settings = policy.settings
    for key, setting in (("where", settings.where), ("clustering", settings.clustering)):
        case = replace(plain, policy=_changed(plain.policy, {key: setting}))
        operation = Operation.OPTIMIZE if key == "clustering" else plain.operation
        if setting is not None and operation in plain.operations:
            yield from _named(policy, key, _failure(replace(case, operation=operation).plan, policy))
    check = settings.check.model_copy(update={"enabled": True})
    tried: tuple[tuple[str, dict[str, object]], ...] = (
        ("check.keys", {"check": check, "expectations": ()}),
        ("expectations", {"check": _DEFAULT.check, "expectations": settings.expectations}),
    )
    for key, changed in tried:
        case = replace(plain, policy=_changed(plain.policy, changed))
        yield from _named(policy, key, _failure(case.plan, policy))
    yield from _named(policy, "when", _never(policy, plain))


def _changed(policy: EffectivePolicy, values: dict[str, object]) -> EffectivePolicy:
    return replace(policy, settings=policy.settings.model_copy(update=values))


def _without_settings(settings: Settings) -> Settings:
    """The settings without those that only the table can contradict."""
    return settings.model_copy(
        update={"where": None, "clustering": None, "expectations": (), "when": None, "check": _DEFAULT.check}
    )


def _never(policy: EffectivePolicy, plain: _Case) -> str | None:
    """A fault for a condition on metrics that this table does not have, such as levels of a table without keys."""
    if plain.table.health is None:
        return None
    found = plain.table.health(plain.base, plain.request()).metrics
    known = {name for name, value in found.items() if value is not None} | PAST | SINCE_RUN
    for operation in plain.operations:
        condition = policy.condition(operation)
        if condition is not None and not could_hold(condition, known):
            missing = ", ".join(sorted(metrics_of(condition) - known))
            return f"expected metrics that {policy.address.name} has, found {condition}: it has no {missing}"
    return None


def _named(policy: EffectivePolicy, key: str, fault: str | None) -> Iterator[str]:
    """The fault with the place of the setting. Expectations name their own."""
    if fault is None:
        return
    origin = policy.origins[key]
    if fault.startswith(f"{origin.file}:"):
        yield fault
    else:
        yield f"{origin.file}:{origin.line}: {key}: {policy.address.name}: {fault.removeprefix(f'{key}: ')}"


def _failure(work: Callable[[], None], policy: EffectivePolicy) -> str | None:
    try:
        work()
    except (NightkeepError, OSError) as failure:
        return _sentence(failure, policy)
    return None


def _sentence(failure: NightkeepError | OSError, policy: EffectivePolicy) -> str:
    return failure_outcome(failure, policy.address.name)[1].removeprefix("UsageError: ")
