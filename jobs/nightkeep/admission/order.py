"""What a caller asks for: one operation on one table, beyond the table's policy."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightkeep.model import Operation, Run, run_token
from nightkeep.model.night import NightPlace
from nightkeep.model.sweep_rules import FoundBy, SweepMode
from nightkeep.policy import EffectivePolicy
from nightkeep.policy.setting_types import AuditBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalOptions:
    """What a sweep or an expiry may remove. None means that the table's policy decides. Ages are in milliseconds.

    `of_run`: only files that this run left; of a restore, the run whose files are restored. `found_by`: where a sweep
    finds candidates.
    """

    mode: SweepMode | None = None
    older_than_ms: int | None = None
    max_share: float | None = None
    retain_last: int | None = None
    below_floor: bool = False
    of_run: str | None = None
    found_by: FoundBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """Who releases a table from its hold, and why. Without a `user`, the account of the process does."""

    user: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What a call asks beyond its operation and the policy, for whichever operation takes it. The fields are those of
    `Order`."""

    rows: str | None = None
    keys: Path | None = None
    sets: tuple[str, ...] = ()
    removal: RemovalOptions = field(default_factory=RemovalOptions)
    release: ReleaseOptions = field(default_factory=ReleaseOptions)
    asked: Mapping[str, object] = field(default_factory=dict)

    def order(self, operation: Operation, run_id: str, reports: str, **more: Any) -> Order:
        """The order of an operation with these options; `more` are further fields of it."""
        return Order(
            operation,
            run_id,
            reports,
            rows=self.rows,
            keys=self.keys,
            sets=self.sets,
            removal=self.removal,
            release=self.release,
            **{"asked": self.asked, **more},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an audit looks at. `since`: the version after which, `since_ms`: how long ago, in milliseconds; without
    either, after the last audit. `files`: whether every file of every retained version is looked for. None means that
    the table's policy decides. `share`: what this audit and others may take together."""

    since: int | None = None
    since_ms: int | None = None
    files: bool = False
    byte_budget: int | None = None
    share: AuditShare | None = None


@dataclass(frozen=True, slots=True)
class AuditShare:
    """The budget that all audits of a run share. `run`: the name that its tables have in common."""

    run: str
    budget: AuditBudget


@dataclass(frozen=True, slots=True)
class Order:
    """One operation on one table. `reports` is the folder of documents and holds.

    The rows to delete are those of `rows`, a condition, or of `keys`, a file of keys; without either, no row is
    deleted. With `sets`, the rows of `rows` are updated instead. `removal` is for a sweep, an expiry or a restore; a
    restore without it is of the files of `run_id`. `audit` is for an audit. `named`: the caller named the operation, so
    that it is done on whatever health of the table. `night`: the table's place in a night with a budget. `asked` are
    the caller's options of a rewrite or an audit, as given. Without `checks`, nothing is checked afterwards.
    `expected_plan`: only a plan of this digest may be carried out, or of one of several between commas.
    """

    operation: Operation
    run_id: str
    reports: str
    dry_run: bool = False
    rows: str | None = None
    keys: Path | None = None
    sets: tuple[str, ...] = ()
    removal: RemovalOptions = field(default_factory=RemovalOptions)
    release: ReleaseOptions = field(default_factory=ReleaseOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    named: bool = False
    night: NightPlace | None = None
    asked: Mapping[str, object] = field(default_factory=dict)
    checks: bool = True
    expected_plan: str | None = None

    @property
    def left_out(self) -> str | None:
        """Why a night has no budget left for the table; None if it has."""
        return None if self.night is None or self.night.taken else self.night.reason

    def mode_for(self, policy: EffectivePolicy) -> SweepMode:
        """What becomes of files: by the order, else by the policy."""
        return SweepMode.DRY_RUN if self.dry_run else self.removal.mode or policy_mode(policy, self.operation)

    def options(self, policy: EffectivePolicy) -> dict[str, object]:
        """The options of the run, as its document keeps them. A repeated run id must have the same ones."""
        if self.operation.rewrites or self.operation is Operation.AUDIT:
            return dict(self.asked)
        options = {
            "older_than_ms": self.removal.older_than_ms,
            "max_share": self.removal.max_share,
            "retain_last": self.removal.retain_last,
            "below_floor": self.removal.below_floor or None,
            "of_run": self.removal.of_run,
            "found_by": None if self.removal.found_by is None else str(self.removal.found_by),
        }
        return {"mode": str(self.mode_for(policy)), **{k: v for k, v in options.items() if v is not None}}

    def checked(self, policy: EffectivePolicy) -> bool:
        """Whether a check follows on what the run does."""
        return self.checks and policy.settings.check.enabled

    def attempt(self, branch: str = "") -> Run:
        """A new attempt of the run, as of now. `branch`: the one that it commits to, as Address.branch."""
        now_ms = time.time_ns() // 1_000_000
        return Run(self.run_id, run_token(self.run_id, self.operation), new_attempt(), now_ms, branch)


def policy_mode(policy: EffectivePolicy, operation: Operation) -> SweepMode:
    """What the policy asks for: `sweep.mode` for orphans. An expiry deletes, as the files of its versions are known."""
    return SweepMode(policy.settings.sweep.mode) if operation is Operation.SWEEP else SweepMode.DELETE


def new_attempt() -> str:
    """A name that no other attempt of a run has."""
    return uuid.uuid4().hex[:8]
