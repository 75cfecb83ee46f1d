"""Policy -> how a table is, and what care would bring and cost. Reads metadata and documents only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nightkeep.errors import NightkeepError, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Operation
from nightkeep.model.health import Health
from nightkeep.model.night import NightPlace
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.reports import failure_outcome, read_history
from nightkeep.running.past_metrics import past_metrics
from nightkeep.running.planned_work import request_of, run_of
from nightkeep.running.planning import predicted_of
from nightkeep.running.prediction import Prediction, score, shown
from nightkeep.running.run_log import RunOrder
from nightkeep.running.skip_reasons import skip_reason
from nightkeep.running.unmet_conditions import owner_holds_back, too_long, unmet_by
from nightkeep.stages.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """How one table is. `score`: what care would save readers for what it costs, higher is more urgent; None if there
    is nothing to do, or if the table cannot be told: then `why` says so. `metrics`: facts by name, None where the
    format has no such thing. `would`: the operation that is worth most. `seconds` and `moved_bytes`: what all
    operations of its night would take, and read and write. `held_back`: why a run would be skipped now, whatever it
    costs."""

    name: str
    table: str
    format: str
    why: str
    score: float | None = None
    metrics: Mapping[str, int | float | None] = field(default_factory=dict)
    would: Prediction | None = None
    seconds: float = 0.0
    moved_bytes: int = 0
    held_back: str | None = None
    night: NightPlace | None = None

    @property
    def nights_waited(self) -> int:
        """For how many nights a budget has left it out."""
        return int(self.metrics.get("nights_waited") or 0)

    def to_json(self) -> dict[str, object]:
        would = None if self.would is None else self.would.to_json()
        return {
            "name": self.name, "table": self.table, "format": self.format, "score": self.score,
            "metrics": dict(self.metrics), "would": would, "why": self.why,
            "night": None if self.night is None else self.night.to_json(),
        }  # fmt: skip


def read_status(policy: EffectivePolicy, reports: str, *, now: datetime) -> TableStatus:
    """The status of a table now. A table that cannot be read or handled has the reason for its status."""
    address = policy.address
    try:
        return _status(policy, reports, open_table(address), now)
    except (NightkeepError, OSError) as failure:
        outcome, reason = failure_outcome(failure, address.name)
        return TableStatus(
            name=address.name, table=str(address), format=address.format, why=f"{outcome}: {reason}",
            metrics=past_metrics(read_history(reports, address.name).documents, now),
        )  # fmt: skip


def _status(policy: EffectivePolicy, reports: str, table: OpenTable, now: datetime) -> TableStatus:
    address = policy.address
    past = past_metrics(read_history(reports, address.name).documents, now)
    if table.never_written():
        why = "nothing was ever written to it"
        return TableStatus(name=address.name, table=str(address), format=address.format, why=why, metrics=past)
    base = table.snapshot() if table.outline is None else table.outline()
    health = _health(policy, table, base)
    metrics = {} if health is None else shown(health.metrics)
    ranked, refused = _ranked(policy, reports, table, base, health)
    pause = policy.settings.pause
    waiting = skip_reason(policy, reports, now) if pause is None else f"paused: {pause}"
    waiting = owner_holds_back(policy, table, base, now) or waiting
    best = max(ranked, key=lambda each: each[0], default=None)
    if waiting is None and best is not None:
        unmet = unmet_by(policy, best[1].operation, {**metrics, **past})
        waiting = unmet or too_long(policy.settings.window, sum(each.seconds for _, each in ranked), now)
    why = _why(base, best, refused)
    return TableStatus(
        name=address.name, table=str(address), format=address.format,
        why=why if waiting is None else f"{why}; a run would be skipped now: {waiting}",
        score=None if best is None else best[0], metrics={**metrics, **past},
        would=None if best is None else best[1], held_back=waiting,
        seconds=sum(each.seconds for _, each in ranked), moved_bytes=sum(e.reads + e.writes for _, e in ranked),
    )  # fmt: skip


def _health(policy: EffectivePolicy, table: OpenTable, base: Snapshot) -> Health | None:
    if table.health is None:
        return None
    order = RunOrder(Operation.OPTIMIZE, "status", reports="", dry_run=True)
    return table.health(base, request_of(policy, order, table, base, run=run_of(order)))


def _ranked(
    policy: EffectivePolicy, reports: str, table: OpenTable, base: Snapshot, health: Health | None
) -> tuple[list[tuple[float, Prediction]], list[str]]:
    """The operations of the policy that have work, each with its score; and the reasons of those that are refused."""
    ranked, refused = [], []
    operations = policy.operations if policy.settings.operations else tuple(filter(table.suits, policy.operations))
    for operation in operations:
        order = RunOrder(operation, "status", reports="", dry_run=True)
        try:
            planned = plan(table, base, request_of(policy, order, table, base, run=run_of(order)))
        except (NightkeepError, UsageError) as failure:
            refused.append(f"{operation}: {failure}")
            continue
        predicted = predicted_of(policy, reports, planned, base)
        if predicted is not None and health is not None:
            ranked.append((score(health, predicted, planned), predicted))
    return ranked, refused


def _why(base: Snapshot, best: tuple[float, Prediction] | None, refused: Sequence[str]) -> str:
    if best is None:
        return "; ".join(refused) or "nothing to do"
    would, before = best[1], len(base.sizes.bytes)
    becomes = f"{before:,} files would become {would.files:,}" if would.files != before else f"{before:,} files stay"
    return "; ".join([f"{would.operation}: {becomes}", *refused])
