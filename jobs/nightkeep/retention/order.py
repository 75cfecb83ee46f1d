"""A caller's request for sweep, expire or restore of one table, and the document while the run works on it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from nightkeep.admission.owner_says import OwnerSays
from nightkeep.admission.run_ids import ASKED
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.records import Metrics, RunDocument, read_history, secure
from nightkeep.running.interrupted_run import unfinished_reason
from nightkeep.running.run_log import ended_now

CHECK_WAIT_MS: Final = 7 * DAY_MS
"""How long a version waits for its check. Without a limit, a check that never runs would block every later expiry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionOrder:
    """What a caller asks for. None means that the table's policy decides. Ages are in milliseconds.

    For a restore, `run_id` is the run whose files are to be restored. Without `checks` the run is not checked
    afterwards.
    """

    operation: Operation
    run_id: str
    reports: str
    mode: SweepMode | None = None
    older_than_ms: int | None = None
    max_share: float | None = None
    retain_last: int | None = None
    below_floor: bool = False
    of_run: str | None = None
    checks: bool = True

    def mode_for(self, policy: EffectivePolicy) -> SweepMode:
        """The mode of this order, else the policy's."""
        return self.mode or policy_mode(policy, self.operation)

    def asked(self, policy: EffectivePolicy) -> dict[str, object]:
        """The options of the run. A repeated run id must have the same ones."""
        options = {
            "older_than_ms": self.older_than_ms,
            "max_share": self.max_share,
            "retain_last": self.retain_last,
            "below_floor": self.below_floor or None,
            "of_run": self.of_run,
        }
        return {"mode": str(self.mode_for(policy)), **{k: v for k, v in options.items() if v is not None}}

    def checked(self, policy: EffectivePolicy) -> bool:
        return self.checks and policy.settings.check.enabled

    def run(self) -> Run:
        now_ms = time.time_ns() // 1_000_000
        return Run(self.run_id, run_token(self.run_id, self.operation), uuid.uuid4().hex[:8], now_ms)


def policy_mode(policy: EffectivePolicy, operation: Operation) -> SweepMode:
    """What the policy asks for: `sweep.mode` for orphans. An expiry deletes, as the files of its versions are known."""
    return SweepMode(policy.settings.sweep.mode) if operation is Operation.SWEEP else SweepMode.DELETE


@dataclass
class Log:
    """The document while the run works on it. Facts are added as they appear; `stored_unfinished` saves them in
    case of a crash.

    `earlier` is the stored document of an earlier attempt that did not finish.
    """

    policy: EffectivePolicy
    order: RetentionOrder
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    extra: dict[str, object] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    earlier: RunDocument | None = None
    owner: OwnerSays = field(default_factory=OwnerSays)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record the seconds of the `with` block, without the seconds of stages nested in it."""
        begun, nested = time.perf_counter(), sum(self.seconds.values())
        try:
            yield
        finally:
            inner = sum(self.seconds.values()) - nested
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun - inner

    def document(self, outcome: Outcome, reason: str | None = None) -> RunDocument:
        """The document with this outcome. If this attempt changed nothing, the facts of an earlier one stay in it."""
        if self.earlier is not None and not self.extra.get("changed"):
            both = f"{reason}; an earlier attempt of this run had not ended"
            worst = Outcome.worst([outcome, self.earlier.outcome])
            return replace(self.earlier, outcome=worst, reason=both, finished_at=datetime.now(UTC))
        return ended_now(
            self.policy,
            self.order,
            self.started,
            outcome,
            reason,
            metrics=Metrics(seconds=dict(self.seconds)),
            extra={**self._promised, **self.extra},
            **self.facts,
        )

    @property
    def _promised(self) -> dict[str, object]:
        """Keys that every document of an expiry or a sweep has, even if the run ended before it listed anything."""
        promised = {"mode": str(self.order.mode_for(self.policy)), ASKED: self.order.asked(self.policy)}
        if self.order.operation is Operation.EXPIRE:
            return {**promised, "expired": [], "kept": []}
        if self.order.operation is not Operation.SWEEP:
            return {}
        none = {"orphans_total": 0, "orphans_bytes": 0, "orphans_file": None, "live_files": None, "young_files": None}
        return {**promised, "orphans": [], **none}

    def stored_unfinished(self) -> None:
        """Store the document before anything is removed. Raises EvidenceError if that fails: nothing may be removed."""
        secure(self.document(Outcome.FAILED, unfinished_reason(self.order.operation)), self.order.reports)


def unchecked_versions(policy: EffectivePolicy, reports: str, *, now_ms: int) -> frozenset[int]:
    """Versions that a check may still need: those of unchecked runs of the last CHECK_WAIT_MS.

    Empty if the policy turns the check off. Raises CorruptMetadata for an unreadable document of that time: it may
    belong to such a run.
    """
    if not policy.settings.check.enabled:
        return frozenset()
    since_ms = now_ms - CHECK_WAIT_MS
    history = read_history(reports, policy.address.name)
    for document in history.unreadable:
        if document.modified_ms is None or document.modified_ms >= since_ms:
            raise document.error()
    waiting = [d for d in history.documents if d.awaits_check and d.finished_at.timestamp() * 1000 >= since_ms]
    named = [(d.base_version, d.parent_version, d.committed_version) for d in waiting]
    named += [(c.version, c.parent_version, None) for d in waiting for c in d.commits]
    return frozenset(version for versions in named for version in versions if version is not None)


def retained_files(table: OpenTable, operation: Operation) -> OpenFiles:
    """What the operation reads of the table. Raises RefusedTable for one that the table's format does not have."""
    if table.retention is None or operation not in (Operation.SWEEP, Operation.EXPIRE, Operation.RESTORE):
        missing = f"operation {operation} does not exist for {table.address.format} tables"
        raise RefusedTable(table.address.name, missing, "leave it to its engine")
    return table.retention
