"""What happened -> one document per run, table and operation; the JSON is a contract that only ever grows.

Every part keeps JSON keys it does not know in `extra`, so that a document of a newer version survives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Clustering, Operation, Outcome, Plan, UnitKey, UnitProof, VerifyLevel
from nightkeep.redaction import redact, redacted
from nightkeep.reports.card import render_card
from nightkeep.reports.codec import decode, encode

Extra = Mapping[str, object]


class CheckStatus(StrEnum):
    """How a check ended; a single expectation ends in one of the first three."""

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


_UNJUDGED = frozenset({CheckStatus.NOT_RUN, CheckStatus.ERRORED})


@dataclass(frozen=True, slots=True)
class UnitEstimate:
    """What a planned unit was expected to cost and bring; sizes in bytes."""

    read_bytes: int
    written_bytes: int
    files_after: int
    benefit: str
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanUnit:
    """One unit of the plan and why it was picked."""

    partition: str
    bucket: int | None
    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: UnitEstimate | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanSection:
    """What was planned on `version`, in the plan's order; `clustering` is None where files are only packed."""

    version: int | None = None
    units: tuple[PlanUnit, ...] = ()
    notes: tuple[str, ...] = ()
    clustering: Clustering | None = None
    extra: Extra = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan[object], clustering: Clustering | None = None) -> PlanSection:
        units = tuple(
            PlanUnit(
                partition=unit.key.partition,
                bucket=unit.key.bucket,
                reason=unit.reason,
                input_files=unit.input_files,
                input_bytes=unit.input_bytes,
                estimate=decode(UnitEstimate, encode(unit.estimate), str(unit.key)),
            )
            for unit in plan.units
        )
        return PlanSection(plan.version, units, plan.notes, clustering)


@dataclass(frozen=True, slots=True)
class UnitResult:
    """How one unit ended, and its proof: `equal` is None where nothing was compared."""

    partition: str
    bucket: int | None
    outcome: Outcome
    reason: str | None = None
    rows: int | None = None
    base_fingerprint: str | None = None
    candidate_fingerprint: str | None = None
    equal: bool | None = None
    faults: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)

    @staticmethod
    def of(proof: UnitProof, outcome: Outcome, reason: str | None = None) -> UnitResult:
        """`rows` are the base's; `equal` speaks of the rows alone, `faults` of everything else."""
        return UnitResult(
            partition=proof.key.partition,
            bucket=proof.key.bucket,
            outcome=outcome,
            reason=reason,
            rows=proof.base.rows,
            base_fingerprint=str(proof.base),
            candidate_fingerprint=str(proof.candidate),
            equal=proof.base == proof.candidate,
            faults=proof.faults,
        )


@dataclass(frozen=True, slots=True)
class CommitResult:
    """One version we published and what it holds; `parent_version` is the one directly before it.

    Identities are the text of model.VersionIdentity; None where it is not known.
    """

    version: int
    parent_version: int | None
    units: tuple[UnitKey, ...]
    identity: str | None = None
    parent_identity: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """How much the gate looked at, and its cost as a share of the rewrite's (0.25 is a quarter)."""

    level: VerifyLevel
    share_of_rewrite: float | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What was measured: sizes in bytes, `seconds` by stage in the order they ran, None for what was not.

    `extra` holds what an operation or format adds. Pages draw `file_sizes_before`, `file_sizes_after` (bytes
    of each live data file), `levels_before` and `levels_after` (files by level), and what `column_metrics` reads.
    """

    files_before: int | None = None
    files_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    rows: int | None = None
    deleted_rows_marked: int | None = None
    deletion_vectors: int | None = None
    peak_task_memory: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectationSummary:
    """One expectation, what it found, and whether it could be evaluated at all."""

    expectation: str
    status: CheckStatus
    detail: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectations:
    """The check of the published version; `coverage` is a sentence on how much of it was looked at."""

    status: CheckStatus = CheckStatus.NOT_RUN
    results: tuple[ExpectationSummary, ...] = ()
    docs: str | None = None
    coverage: str | None = None
    reason: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """One operation on one table in one run. Times carry their zone; `versions` names software, by component.

    `go_back` is the engine's own statement that restores the version before the commit, given where a published
    version failed its check and where rows were deleted. `base_identity` tells the version planned on from others of
    its number (model.VersionIdentity).
    """

    run_id: str
    table: str
    format: str
    operation: Operation
    outcome: Outcome
    reason: str | None = None
    base_version: int | None = None
    parent_version: int | None = None
    committed_version: int | None = None
    commits: tuple[CommitResult, ...] = ()
    plan: PlanSection = field(default_factory=PlanSection)
    units: tuple[UnitResult, ...] = ()
    verification: Verification | None = None
    metrics: Metrics = field(default_factory=Metrics)
    expectations: Expectations = field(default_factory=Expectations)
    versions: Mapping[str, str] = field(default_factory=dict)
    address: str | None = None
    started_at: datetime
    finished_at: datetime
    go_back: str | None = None
    base_identity: str | None = None
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        naive = [name for name in ("started_at", "finished_at") if getattr(self, name).tzinfo is None]
        if naive:
            raise ValueError(f"{self.table}: {naive[0]}: expected a time with a zone, found one without")

    @property
    def rows_proven(self) -> int:
        """Logical rows of units whose two sides were compared and found equal, without any other fault."""
        return sum(unit.rows or 0 for unit in self.units if unit.equal and not unit.faults)

    @property
    def awaits_check(self) -> bool:
        """Whether a version was published that no check has judged yet: none was run, or it could not be finished."""
        return self.committed_version is not None and self.expectations.status in _UNJUDGED

    @property
    def total_seconds(self) -> float:
        return sum(self.metrics.seconds.values())

    def __str__(self) -> str:
        """One line: what was done to which table, how it ended, and why."""
        version = "" if self.committed_version is None else f", version {self.committed_version}"
        reason = "" if self.reason is None else f": {self.reason}"
        return redact(f"{self.table}: {self.operation}: {self.outcome}{version}{reason}")

    def _repr_html_(self) -> str:
        rows = [
            (name, "" if value is None else f"{value:,}")
            for name, value in (
                ("base version", self.base_version), ("committed version", self.committed_version),
                ("files before", self.metrics.files_before), ("files after", self.metrics.files_after),
                ("rows proven", self.rows_proven), ("units planned", len(self.plan.units)),
            )
        ]  # fmt: skip
        check = ("check", str(self.expectations.status))
        return render_card(self.table, (str(self).removeprefix(f"{self.table}: "),), ("", ""), [*rows, check])

    def to_json(self) -> dict[str, object]:
        """Without credentials."""
        encoded: dict[str, object] = redacted(encode(self))
        return encoded

    @staticmethod
    def from_json(value: object, subject: str = "report") -> RunDocument:
        """Reads what `to_json` wrote. Raises CorruptMetadata naming the key below `subject`."""
        try:
            return decode(RunDocument, value, subject)
        except ValueError as error:
            raise CorruptMetadata(subject, "a report", str(error)) from error


def to_text(document: RunDocument) -> str:
    """The stored form: ASCII JSON, so that any name survives, keys in the order of the contract."""
    return json.dumps(document.to_json(), indent=2, allow_nan=False) + "\n"
