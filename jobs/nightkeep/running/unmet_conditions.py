"""Policy + a version -> why the policy leaves the table alone for its health, or for the time that is left."""

from __future__ import annotations

from datetime import UTC, datetime

from nightkeep.model import Operation, Request
from nightkeep.policy import EffectivePolicy, Window
from nightkeep.policy.when import Metrics, metrics_of, unmet
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.reports import table_documents
from nightkeep.running.owner_says import owner_says, require_no_other_manager
from nightkeep.running.past_metrics import PAST, past_metrics
from nightkeep.running.prediction import Prediction
from nightkeep.running.run_log import RunOrder


def held_back(
    policy: EffectivePolicy, order: RunOrder, table: OpenTable, base: Snapshot, request: Request,
    predicted: Prediction | None,
) -> str | None:  # fmt: skip
    """Why the work that was `predicted` is not to be done now. None where it is, and where there is no work.

    Raises RefusedTable for a table that another service manages, and for one whose owner cannot be understood."""
    description, now = table.described(base), _now(request)
    require_no_other_manager(policy, description)
    owner = owner_says(policy, description)
    if predicted is None:
        return None
    unmet = owner.left_alone(now) or _unmet(policy, order, table, base, request)
    windows = (policy.window(order.operation), owner.window)
    late = (too_long(window, predicted.seconds, now) for window in windows)
    return unmet or next(filter(None, late), None)


def owner_holds_back(policy: EffectivePolicy, table: OpenTable, base: Snapshot, now: datetime) -> str | None:
    """Why the table's owner says to leave it alone now, or None. Raises as `held_back`."""
    description = table.described(base)
    require_no_other_manager(policy, description)
    return owner_says(policy, description).left_alone(now)


def too_long(window: Window | None, seconds: float, now: datetime) -> str | None:
    """Why work of so many seconds would not be done before the window closes; None if it would."""
    if window is None or not window.contains(now) or seconds <= window.left(now).total_seconds():
        return None
    left = window.left(now).total_seconds()
    return f"would end outside its window {window}: about {seconds:,.0f} s to do, and {left:,.0f} s are left"


def unmet_by(policy: EffectivePolicy, operation: Operation, metrics: Metrics) -> str | None:
    """Why the condition for this operation does not hold with these metrics; None where it does."""
    condition = policy.condition(operation)
    why = None if condition is None else unmet(condition, metrics)
    return None if why is None else f"when: {why}"


def _unmet(policy: EffectivePolicy, order: RunOrder, table: OpenTable, base: Snapshot, request: Request) -> str | None:
    """Why the condition for this operation does not hold. None where it does, where there is none, and for an operation
    that the caller named and for changes of rows, which no health of the table holds back."""
    condition = policy.condition(order.operation)
    if condition is None or order.named or order.rows is not None or order.keys is not None:
        return None
    metrics = {} if table.health is None else dict(table.health(base, request).metrics)
    if metrics_of(condition) & PAST:
        metrics |= past_metrics(table_documents(order.reports, policy.address.name), _now(request))
    return unmet_by(policy, order.operation, metrics)


def _now(request: Request) -> datetime:
    return datetime.fromtimestamp(request.now_ms / 1000, UTC)
