"""Policy + an opened table -> its plan, its cost, and what decides whether it may be done. Reads metadata only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import owner_of
from nightkeep.admission.past_metrics import PAST, past_metrics
from nightkeep.admission.reasons import Opened
from nightkeep.estimates.corrections import read_corrections
from nightkeep.estimates.prediction import Prediction, predict
from nightkeep.model import Clustering, Request, Run
from nightkeep.policy import EffectivePolicy, when
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot
from nightkeep.records import Metrics, table_documents
from nightkeep.running.expected_columns import require_expected_columns
from nightkeep.running.planned_work import PlannedWork, request_of
from nightkeep.running.undone_deletes import find_undone_deletes
from nightkeep.stages.plan import plan


def plan_table(policy: EffectivePolicy, order: Order, table: OpenTable, run: Run) -> PlannedWork | None:
    """The plan of the table; None if nobody ever wrote to it."""
    if table.never_written():
        return None
    begun = time.perf_counter()
    base = table.outline() if order.dry_run and table.outline is not None else table.snapshot()
    require_expected_columns(policy, table, base)
    request = request_of(policy, order, table, base, run=run)
    planned = plan(table, base, request)
    watch = find_undone_deletes(table, base, order.reports, now_ms=run.now_ms)
    predicted = predicted_of(policy, order.reports, planned, base, request.clustering)
    opened = opened_for(policy, order, table, base, request, predicted)
    return PlannedWork(base, request, planned, watch, time.perf_counter() - begun, opened, predicted)


def opened_for(
    policy: EffectivePolicy,
    order: Order,
    table: OpenTable,
    base: Snapshot,
    request: Request,
    predicted: Prediction | None,
) -> Opened | None:
    """What decides whether the work that was `predicted` may be done now; None if there is no work.

    Raises RefusedTable for a table that another service manages, and for one whose owner cannot be understood."""
    owner = owner_of(policy, table.described(base))
    if predicted is None:
        return None
    return Opened(owner, _condition_metrics(policy, order, table, base, request), predicted.seconds)


def _condition_metrics(
    policy: EffectivePolicy, order: Order, table: OpenTable, base: Snapshot, request: Request
) -> Mapping[str, int | float | None] | None:
    """The metrics for the policy's condition. None where there is none, and for an operation that the caller named and
    for changes of rows, which no health of the table holds back."""
    condition = policy.condition(order.operation)
    if condition is None or order.named or order.rows is not None or order.keys is not None:
        return None
    metrics = {} if table.health is None else dict(table.health(base, request).metrics)
    if when.metrics_of(condition) & PAST:
        now = datetime.fromtimestamp(request.now_ms / 1000, UTC)
        metrics |= past_metrics(table_documents(order.reports, policy.address.name), now)
    return metrics


def predicted_of(
    policy: EffectivePolicy, reports: str, planned: OpenPlan, base: Snapshot, clustering: Clustering | None
) -> Prediction | None:
    """What the plan would come to, corrected by what earlier runs came to; None if it has no work."""
    if not planned.units:
        return None
    address = policy.address
    learned = read_corrections(reports, address.name, format=address.format, operation=planned.operation)
    return predict(planned, base.sizes, learned, clustering=clustering)


def metrics_of(planned: PlannedWork) -> Metrics:
    """The metrics of a run before its work: what was predicted."""
    return Metrics(predicted=None if planned.predicted is None else planned.predicted.section)
