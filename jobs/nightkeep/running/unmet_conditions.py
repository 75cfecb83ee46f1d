"""Policy + a version -> why the policy's `when` leaves the table alone, or None."""

from __future__ import annotations

from datetime import UTC, datetime

from nightkeep.model import Operation, Request
from nightkeep.policy import EffectivePolicy
from nightkeep.policy.when import Metrics, metrics_of, unmet
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.reports import read_history
from nightkeep.running.past_metrics import PAST, past_metrics
from nightkeep.running.run_log import RunOrder


def unmet_condition(
    policy: EffectivePolicy, order: RunOrder, table: OpenTable, base: Snapshot, request: Request
) -> str | None:
    """Why the condition for this operation does not hold. None where it does, where there is none, and for an operation
    that the caller named and for changes of rows, which no health of the table holds back."""
    condition = policy.condition(order.operation)
    if condition is None or order.named or order.rows is not None or order.keys is not None:
        return None
    metrics = {} if table.health is None else dict(table.health(base, request).metrics)
    if metrics_of(condition) & PAST:
        documents = read_history(order.reports, policy.address.name).documents
        metrics |= past_metrics(documents, datetime.fromtimestamp(request.now_ms / 1000, UTC))
    return unmet_by(policy, order.operation, metrics)


def unmet_by(policy: EffectivePolicy, operation: Operation, metrics: Metrics) -> str | None:
    """Why the condition for this operation does not hold with these metrics; None where it does."""
    condition = policy.condition(operation)
    why = None if condition is None else unmet(condition, metrics)
    return None if why is None else f"when: {why}"
