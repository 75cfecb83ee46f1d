"""Policy + an opened table -> its plan, what that would come to, and why it is to wait. Reads metadata only."""

from __future__ import annotations

import time

from nightkeep.model import Clustering, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot
from nightkeep.reports import Metrics
from nightkeep.running.corrections import read_corrections
from nightkeep.running.expected_columns import require_expected_columns
from nightkeep.running.planned_work import PlannedWork, request_of
from nightkeep.running.prediction import Prediction, predict
from nightkeep.running.run_log import RunOrder
from nightkeep.running.undone_deletes import find_undone_deletes
from nightkeep.running.unmet_conditions import held_back
from nightkeep.stages.plan import plan


def plan_table(policy: EffectivePolicy, order: RunOrder, table: OpenTable, run: Run) -> PlannedWork | None:
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
    unmet = held_back(policy, order, table, base, request, predicted)
    return PlannedWork(base, request, planned, watch, time.perf_counter() - begun, unmet, predicted)


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
