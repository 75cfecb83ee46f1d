"""Policy -> how a table is, and what maintenance would gain and cost. Reads metadata and documents only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypedDict

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import owner_of
from nightkeep.admission.past_metrics import past_metrics
from nightkeep.admission.reasons import Case, Opened, case_of, reason_to_skip
from nightkeep.errors import NightkeepError, UsageError
from nightkeep.estimates.prediction import Prediction, PredictionJson, score, shown
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome
from nightkeep.model.counted import counted
from nightkeep.model.health import Health
from nightkeep.model.night import NightPlace, NightPlaceJson
from nightkeep.policy import EffectivePolicy
from nightkeep.policy.when import metrics_of
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.records import failure_outcome, table_documents
from nightkeep.running.commits_since_run import commits_since_run
from nightkeep.running.rewrites.planning import predicted_of, request_of
from nightkeep.stages.plan import plan


class StatusJson(TypedDict):
    """A row of `status`. `metrics`: facts by name, null where the format has no such thing."""

    name: str
    table: str
    format: str
    score: float | None
    metrics: dict[str, int | float | None]
    would: PredictionJson | None
    why: str
    night: NightPlaceJson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """How one table is. `score`: what maintenance would save readers for its cost, higher is more urgent; None if there
    is nothing to do, or if the table cannot be read: then `why` gives the reason. `metrics`: facts by name, None where
    the format has no such thing. `would`: the operation that is worth most. `seconds` and `moved_bytes`: what all
    operations of its night would take, and read and write; those that wait count only if all do. `held_back`: why a run
    would be skipped now, whatever it costs. `unread`: the outcome of a table that could not be read, else None."""

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
    unread: Outcome | None = None

    @property
    def nights_waited(self) -> int:
        """For how many nights a budget has left it out."""
        return int(self.metrics.get("nights_waited") or 0)

    def to_json(self) -> StatusJson:
        would = None if self.would is None else self.would.to_json()
        return {
            "name": self.name,
            "table": self.table,
            "format": self.format,
            "score": self.score,
            "metrics": dict(self.metrics),
            "would": would,
            "why": self.why,
            "night": None if self.night is None else self.night.to_json(),
        }


def read_status(policy: EffectivePolicy, reports: str, *, now: datetime) -> TableStatus:
    """The status of a table now. A table that cannot be read or handled has the reason for its status."""
    address = policy.address
    try:
        return _status(policy, reports, open_table(address), now)
    except (NightkeepError, OSError) as failure:
        outcome, reason = failure_outcome(failure, address.name)
        return TableStatus(
            name=address.name,
            table=str(address),
            format=address.format,
            why=f"{outcome}: {reason}",
            metrics=past_metrics(table_documents(reports, address.name), now),
            unread=outcome,
        )


def _status(policy: EffectivePolicy, reports: str, table: OpenTable, now: datetime) -> TableStatus:
    address = policy.address
    documents = table_documents(reports, address.name)
    past = past_metrics(documents, now)
    if table.never_written():
        why = "nothing was ever written to it"
        return TableStatus(name=address.name, table=str(address), format=address.format, why=why, metrics=past)
    base = table.snapshot() if table.outline is None else table.outline()
    conditions = [each for operation in policy.operations if (each := policy.condition(operation)) is not None]
    named = {name for condition in conditions for name in metrics_of(condition)}
    past = {**past, **commits_since_run(table, documents, asked=named)}
    health = _health(policy, table, base)
    metrics = {} if health is None else shown(health.metrics)
    ranked, refused = _ranked(policy, reports, table, base, health)
    opened = Opened(owner_of(policy, table.described(base)), {**metrics, **past})
    case = replace(case_of(policy, Order(policy.operations[0], "status", reports), now), opened=opened)
    waiting = _waiting(case, opened, [would for _, would in ranked])
    due = [each for each, reason in zip(ranked, waiting, strict=True) if reason is None]
    best = max(due or ranked, key=lambda each: each[0], default=None)
    if best is None:
        held_back = reason_to_skip(replace(case, opened=replace(opened, metrics=None)))
    else:
        held_back = None if due else waiting[ranked.index(best)]
    why = _why(base, best, refused)
    return TableStatus(
        name=address.name,
        table=str(address),
        format=address.format,
        why=why if held_back is None else f"{why}; a run would be skipped now: {held_back}",
        score=None if best is None else best[0],
        metrics={**metrics, **past},
        would=None if best is None else best[1],
        held_back=held_back,
        seconds=sum(each.seconds for _, each in due or ranked),
        moved_bytes=sum(each.reads + each.writes for _, each in due or ranked),
    )


def _waiting(case: Case, opened: Opened, ranked: Sequence[Prediction]) -> list[str | None]:
    """Why each operation would be skipped now; None where it would not. One follows on the other."""
    reasons, seconds = list[str | None](), 0.0
    for would in ranked:
        until_then = replace(opened, seconds=seconds + would.seconds)
        reasons.append(reason_to_skip(replace(case, operation=would.operation, opened=until_then)))
        seconds += would.seconds if reasons[-1] is None else 0.0
    return reasons


def _health(policy: EffectivePolicy, table: OpenTable, base: Snapshot) -> Health | None:
    if table.health is None:
        return None
    order = Order(Operation.OPTIMIZE, "status", reports="", dry_run=True)
    return table.health(base, request_of(policy, order, table, base, run=order.attempt()))


def _ranked(
    policy: EffectivePolicy, reports: str, table: OpenTable, base: Snapshot, health: Health | None
) -> tuple[list[tuple[float, Prediction]], list[str]]:
    """The operations of the policy that have work, each with its score; and the reasons of those that are refused."""
    ranked, refused = [], []
    operations = policy.operations if policy.settings.operations else tuple(filter(table.suits, policy.operations))
    for operation in operations:
        order = Order(operation, "status", reports="", dry_run=True)
        try:
            request = request_of(policy, order, table, base, run=order.attempt())
            planned = plan(table, base, request)
        except (NightkeepError, UsageError) as failure:
            refused.append(f"{operation}: {failure}")
            continue
        predicted = predicted_of(policy, reports, planned, base, request.clustering)
        if predicted is not None and health is not None:
            ranked.append((score(health, predicted, planned), predicted))
    return ranked, refused


def _why(base: Snapshot, best: tuple[float, Prediction] | None, refused: Sequence[str]) -> str:
    if best is None:
        return "; ".join(refused) or "nothing to do"
    would, before = best[1], len(base.sizes.bytes)
    files = counted(before, "file")
    becomes = f"{files} would become {would.files:,}" if would.files != before else f"{files} would stay"
    return "; ".join([f"{would.operation}: {becomes}", *refused])
