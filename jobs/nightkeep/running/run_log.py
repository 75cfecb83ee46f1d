"""The order for one run on one table, and its document while the run works on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from nightkeep.admission.run_ids import ASKED
from nightkeep.model import Committed, Operation, Outcome
from nightkeep.model.night import NightPlace
from nightkeep.policy import EffectivePolicy
from nightkeep.records import Metrics, RunDocument
from nightkeep.running.software_versions import versions


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What a caller asks for, beyond the table's policy. `reports` is the folder of documents and holds.

    The rows to delete are those of `rows`, a condition, or of `keys`, a file of keys; without either, no row is
    deleted. With `sets`, the rows of `rows` are updated instead. `named`: the caller named the operation, so that it is
    done on whatever health of the table. `night`: the table's place in a night with a budget. `asked` are the caller's
    options, as given; a repeated run id must have the same ones.
    """

    operation: Operation
    run_id: str
    reports: str
    dry_run: bool = False
    rows: str | None = None
    keys: Path | None = None
    sets: tuple[str, ...] = ()
    named: bool = False
    night: NightPlace | None = None
    asked: Mapping[str, object] = field(default_factory=dict)

    @property
    def left_out(self) -> str | None:
        """Why a night has no budget left for the table; None if it has."""
        return None if self.night is None or self.night.taken else self.night.reason


class Ordered(Protocol):
    """The part of an order that identifies its document."""

    @property
    def operation(self) -> Operation: ...

    @property
    def run_id(self) -> str: ...


def ended_now(
    policy: EffectivePolicy, order: Ordered, started: datetime, outcome: Outcome, reason: str | None, **facts: Any
) -> RunDocument:
    """The document of an order that ends now. `facts` are its other fields."""
    return RunDocument(
        run_id=order.run_id,
        table=policy.address.name,
        format=policy.address.format,
        operation=order.operation,
        outcome=outcome,
        reason=reason,
        address=str(policy.address),
        started_at=started,
        finished_at=datetime.now(UTC),
        versions=versions(),
        **facts,
    )


@dataclass
class RunLog:
    """The document while the run works on it; each stage adds its facts."""

    policy: EffectivePolicy
    order: RunOrder
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    committed: Callable[[], Sequence[Committed]] | None = None
    """Looks up what the run has published. None before its first attempt to publish."""
    publishes: bool = False
    """Whether a commit has begun that `facts` has no result of yet."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def document(self, outcome: Outcome, reason: str | None = None, **facts: Any) -> RunDocument:
        known = {**self.facts, **facts}
        metrics = replace(known.pop("metrics", Metrics()), seconds=dict(self.seconds))
        asked = dict(self.order.asked)
        if asked:
            known["extra"] = {**known.get("extra", {}), ASKED: asked}
        if self.order.night is not None:
            known["extra"] = {**known.get("extra", {}), "night": self.order.night.to_json()}
        return ended_now(self.policy, self.order, self.started, outcome, reason, metrics=metrics, **known)
