"""A table -> its plan and base version as one value that pickles, so that another process can read the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nightkeep.admission.order import Order
from nightkeep.admission.reasons import Opened
from nightkeep.estimates.prediction import Prediction
from nightkeep.model import Committed, Operation, Request, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenPlan, OpenTable, Snapshot, Watch
from nightkeep.sql_text.rows.keys import key_condition


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """The plan for `base`, and the findings in the history up to `base`. `seconds`: the time to read and plan. `opened`
    decides whether the work may be done now. It and `predicted`, what the work would come to, are None if there is no
    work."""

    base: Snapshot
    request: Request
    plan: OpenPlan
    watch: Watch | None
    seconds: float
    opened: Opened | None = None
    predicted: Prediction | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """An opened table, and the commits that this run has already published.

    `planned` is None if there are such commits, if no plan was asked for, or if the table was never written to.
    """

    table: OpenTable
    published: Sequence[Committed] = ()
    planned: PlannedWork | None = None


class TableReader(Protocol):
    """Reads a table for a run. With `plans` unset it only looks for what the run has published."""

    def __call__(self, policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading: ...


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
        # Only optimize clusters rows.
        clustering=settings.clustering if order.operation is Operation.OPTIMIZE else None,
        min_bytes=settings.min_file_size,
        max_deleted_ratio=settings.max_deleted_ratio,
        task_bytes=settings.task_memory,
        wide_bytes=settings.exchange_above,
        writers=settings.writers,
    )
