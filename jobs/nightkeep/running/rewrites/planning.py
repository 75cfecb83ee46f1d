"""Policy + an opened table -> its plan, its cost, and what decides whether it may be done. Reads metadata only."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import owner_of
from nightkeep.admission.past_metrics import PAST, past_metrics
from nightkeep.admission.reasons import Opened
from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.estimates.corrections import read_corrections
from nightkeep.estimates.prediction import Prediction, predict, score, shown
from nightkeep.model import Clustering, Operation, Request, Run
from nightkeep.model.health import Health
from nightkeep.policy import EffectivePolicy, when
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot, Watch
from nightkeep.records import Metrics, table_documents
from nightkeep.records.found_versions import FoundVersions
from nightkeep.running.commits_since_run import SINCE_RUN, commits_since_run
from nightkeep.running.rewrites.found_versions import found_versions
from nightkeep.running.rewrites.undone_deletes import find_undone_deletes
from nightkeep.sql_text.rows.keys import key_condition
from nightkeep.stages.plan import plan


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """The plan for `base`, and the findings in the history up to it. Pickles. `seconds`: the time to read and plan.
    `opened` decides whether the work may be done now. It and `predicted`, what the work would come to, are None if
    there is no work. `health` is that of `base`, None where metadata does not give it. `found`: the versions
    since the run before."""

    base: Snapshot
    request: Request
    plan: OpenPlan
    watch: Watch | None
    seconds: float
    opened: Opened | None = None
    predicted: Prediction | None = None
    health: Health | None = None
    found: FoundVersions | None = None


def request_of(policy: EffectivePolicy, order: Order, table: OpenTable, base: Snapshot, *, run: Run) -> Request:
    """The policy's settings for one operation. Raises UsageError for an invalid file of keys."""
    settings, rows = policy.settings, order.rows
    if order.keys is not None and table.row_changes is not None:
        rows = key_condition(order.keys, table.row_changes.columns(base))
    return Request(
        operation=order.operation,
        now_ms=run.now_ms,
        full=settings.full,
        rows=rows,
        sets=order.sets,
        # The policy's filter is for nightly runs, not for a delete.
        where=settings.where if rows is None else None,
        target_bytes=settings.target_size,
        allow_compacting_writers=settings.allow_compacting_writers,
        other_managers_known=settings.other_managers == "known",
        clustering=_clustering(policy, order, table, base),
        min_bytes=settings.min_file_size,
        max_deleted_ratio=settings.max_deleted_ratio,
        task_bytes=settings.task_memory,
        wide_bytes=settings.exchange_above,
        writers=settings.writers,
        respec=settings.respec and order.operation is Operation.OPTIMIZE,
    )


def _clustering(policy: EffectivePolicy, order: Order, table: OpenTable, base: Snapshot) -> Clustering | None:
    """Clustering columns that a table states go before the policy's, as its format allows no others. Its sort order
    does not: it is what the table has by default. Options of a call go before all, so that planning can refuse them."""
    if order.operation is not Operation.OPTIMIZE:
        return None
    asked = policy.settings.clustering
    if asked is not None and policy.is_of_call("clustering"):
        return asked
    own = table.own_clustering(base)
    return own if asked is None or (own is not None and own.order is None) else asked


def plan_table(policy: EffectivePolicy, order: Order, table: OpenTable, run: Run) -> PlannedWork | None:
    """The plan of the table; None if nobody ever wrote to it."""
    if table.never_written():
        return None
    started = time.perf_counter()
    base = table.outline() if order.dry_run and table.outline is not None else table.snapshot()
    require_expected_columns(policy, table, base)
    request = request_of(policy, order, table, base, run=run)
    planned = plan(table, base, request)
    planned = _with_note_of_layout(planned, policy, request, table.own_clustering(base))
    watch = find_undone_deletes(table, base, order.reports, now_ms=run.now_ms)
    predicted = predicted_of(policy, order.reports, planned, base, request.clustering)
    opened = opened_for(policy, order, table, base, request, predicted)
    health = _health(table, base, request)
    found = found_versions(table, base, order.reports)
    seconds = time.perf_counter() - started
    return PlannedWork(base, request, planned, watch, seconds, opened, predicted, health, found)


def _health(table: OpenTable, base: Snapshot, request: Request) -> Health | None:
    # Only pages show it: what it cannot be made of hinders no run.
    with suppress(NightkeepError, OSError):
        return None if table.health is None else table.health(base, request)
    return None


def _with_note_of_layout(
    planned: OpenPlan, policy: EffectivePolicy, request: Request, own: Clustering | None
) -> OpenPlan:
    """The plan, which states that the policy's clustering gives way to the table's own, or goes before it."""
    asked, used = policy.settings.clustering, request.clustering
    if asked is None or own is None or used is None or asked == own:
        return planned
    note = f"the table's own clustering columns are used, {own}, in place of the policy's, {asked}"
    if used == asked:
        note = f"files are clustered, {asked}, and not sorted by the table's {own}"
    return replace(planned, notes=(*planned.notes, note) if planned.units else planned.notes)


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
    asked = when.metrics_of(condition)
    if not asked & (PAST | SINCE_RUN):
        return metrics
    documents = table_documents(order.reports, policy.address.name)
    if asked & PAST:
        metrics |= past_metrics(documents, datetime.fromtimestamp(request.now_ms / 1000, UTC))
    return {**metrics, **commits_since_run(table, documents, asked=asked)}


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
    """The metrics of a run before its work: the health that it found, what the work is worth, what was predicted."""
    health, predicted = planned.health, planned.predicted
    if health is None:
        return Metrics(predicted=None if predicted is None else predicted.section)
    return Metrics(
        predicted=None if predicted is None else predicted.section,
        health={name: float(value) for name, value in shown(health.metrics).items() if value is not None},
        score=None if predicted is None else score(health, predicted, planned.plan),
    )


def require_expected_columns(policy: EffectivePolicy, table: OpenTable, base: Snapshot) -> None:
    """Only the table has its columns, so that an unknown one is found when it is planned and not in the policy."""
    named = [*_named_columns(policy)]
    if not named or table.reading is None:
        return
    names = table.reading.columns(base).names
    for place, column in named:
        if column not in names:
            nearest = difflib.get_close_matches(column, names, n=1)
            raise RefusedTable(
                policy.address.name,
                f"{place}: expected a column of the table, found {column!r}",
                f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(names)}",
            )


def _named_columns(policy: EffectivePolicy) -> Iterator[tuple[str, str]]:
    """Columns, each with the place in the policy that names it."""
    yield from (("check.keys", column) for column in policy.settings.check.keys)
    asked = policy.own_request(())
    for each in () if asked is None else asked.expectations:
        for argument, columns in each.columns.items():
            yield from ((each.places.get(argument, each.name), column) for column in columns)
