"""The results of a run -> one document per table and operation. Keys of the JSON are only added, never changed.

Every part keeps unknown JSON keys in `extra`, so that a document of a newer release survives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from nightkeep.card import render_card
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Clustering, Operation, Outcome, Plan, UnitKey, UnitProof, VerifyLevel
from nightkeep.records.codec import decode, encode
from nightkeep.records.found_versions import FoundVersions
from nightkeep.redaction import redact, redacted

Extra = Mapping[str, object]


class CheckStatus(StrEnum):
    """How a check ended. A single expectation ends in one of the first five."""

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"
    NOT_APPLICABLE = "not_applicable"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


SESSION_SECONDS = "session_seconds"
LOG_NOTE = "log_note"
"""Key of a sentence about the table's log: a checkpoint after the commit, or why there is none."""
UNJUDGED = frozenset({CheckStatus.NOT_RUN, CheckStatus.ERRORED})


@dataclass(frozen=True, slots=True)
class UnitEstimate:
    """The expected cost and benefit of a planned unit, as model.Estimate has them. Sizes are in bytes."""

    read_bytes: int
    written_bytes: int
    files_after: int
    benefit: str
    more_files: int | None = None
    more_bytes: int | None = None
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
    """The plan for `version`, in the plan's order. `clustering` is None if files are only packed.

    `clock_ms`: the time by which rows expire; None in a table whose rows do not.
    """

    version: int | None = None
    units: tuple[PlanUnit, ...] = ()
    notes: tuple[str, ...] = ()
    clustering: Clustering | None = None
    clock_ms: int | None = None
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
                extra=unit.measures,
            )
            for unit in plan.units
        )
        return PlanSection(plan.version, units, plan.notes, clustering, plan.clock_ms)


@dataclass(frozen=True, slots=True)
class UnitResult:
    """How one unit ended, and its proof. `equal` is None if nothing was compared."""

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
        """The result from a proof. `rows` are those of the base. `equal` is about rows only; `faults` are the rest."""
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
    """One published version and its units. `parent_version` is the version directly before it.

    Identities are the text of model.VersionIdentity; None if unknown.
    """

    version: int
    parent_version: int | None
    units: tuple[UnitKey, ...]
    identity: str | None = None
    parent_identity: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """The level of the gate's proof, and its cost as a share of the rewrite's (0.25 is a quarter)."""

    level: VerifyLevel
    share_of_rewrite: float | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What was expected before any work: data files of the table and their bytes afterwards, and seconds of all stages.

    `learned_from`: the measured runs that corrected it, as text. `skipping`: as measured in `extra`, by column.
    """

    files: int
    bytes: int
    seconds: float
    learned_from: str
    skipping: Mapping[str, float] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Measurements: sizes in bytes, `seconds` by stage in the order of the run; None if not measured.

    `extra` holds figures that an operation or format adds. Pages draw `file_sizes_before`, `file_sizes_after` (bytes
    of each live data file), `levels_before`, `levels_after` (files by level), and the figures of `column_metrics`.
    `predicted` and `score`, what the planned work would save readers for each byte that it costs, are None without
    work. `health`: the facts of model.Health that the run found, by name, as far as the format has them.
    SESSION_SECONDS of `extra`: the part of all `seconds` that was not others'.
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
    predicted: Predicted | None = None
    health: Mapping[str, float] = field(default_factory=dict)
    score: float | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectationSummary:
    """One expectation, how it ended, and the details."""

    expectation: str
    status: CheckStatus
    detail: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectations:
    """The check of the published version. `coverage` is a sentence on how much of it was compared."""

    status: CheckStatus = CheckStatus.NOT_RUN
    results: tuple[ExpectationSummary, ...] = ()
    docs: str | None = None
    coverage: str | None = None
    reason: str | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """One operation on one table in one run. Times have a zone. `versions` are software versions, by component.

    `go_back` is the engine's own statement for a rollback to the version before the commit. It is given if a published
    version failed its check, and after a delete of rows. `base_identity` is the identity of the planned version
    (model.VersionIdentity). `table_id` stays when the table is renamed; None if it is not known.
    `found_versions`: those that are new since the run before, None where there are none.
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
    table_id: str | None = None
    found_versions: FoundVersions | None = None
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        naive = [name for name in ("started_at", "finished_at") if getattr(self, name).tzinfo is None]
        if naive:
            raise ValueError(f"{self.table}: {naive[0]}: expected a time with a zone, found one without")

    @property
    def rows_proven(self) -> int:
        """The rows of all units whose two sides were equal, without any fault."""
        return sum(unit.rows or 0 for unit in self.units if unit.equal and not unit.faults)

    @property
    def awaits_check(self) -> bool:
        """Whether a version was published that no check has judged: none was run, or it could not be finished."""
        return self.committed_version is not None and self.expectations.status in UNJUDGED

    @property
    def total_seconds(self) -> float:
        return sum(self.metrics.seconds.values())

    @property
    def session_seconds(self) -> float:
        """The part of `total_seconds` that was this run's own, where others were at work in its session."""
        return own if isinstance(own := self.metrics.extra.get(SESSION_SECONDS), float) else self.total_seconds

    def __str__(self) -> str:
        """One line: operation, table, outcome and reason."""
        version = "" if self.committed_version is None else f", version {self.committed_version}"
        reason = "" if self.reason is None else f": {self.reason}"
        return redact(f"{self.table}: {self.operation}: {self.outcome}{version}{reason}")

    def __repr__(self) -> str:
        return f"<run {redact(self.run_id)} {self}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, "" if value is None else f"{value:,}")
            for name, value in (
                ("base version", self.base_version),
                ("committed version", self.committed_version),
                ("files before", self.metrics.files_before),
                ("files after", self.metrics.files_after),
                ("rows proven", self.rows_proven),
                ("units planned", len(self.plan.units)),
            )
        ]
        check = ("check", str(self.expectations.status))
        return render_card(self.table, (str(self).removeprefix(f"{self.table}: "),), ("", ""), [*rows, check])

    def to_json(self) -> dict[str, object]:
        """The JSON value, without credentials."""
        encoded: dict[str, object] = redacted(encode(self))
        return encoded

    @staticmethod
    def from_json(value: object, subject: str = "report") -> RunDocument:
        """The inverse of `to_json`. Raises CorruptMetadata, naming the key below `subject`."""
        try:
            return decode(RunDocument, value, subject)
        except ValueError as error:
            raise CorruptMetadata(subject, "a report", str(error)) from error


def to_text(document: RunDocument) -> str:
    """The stored text: JSON in ASCII, so that any name survives, with keys in the order of the fields."""
    return json.dumps(document.to_json(), indent=2, allow_nan=False) + "\n"
