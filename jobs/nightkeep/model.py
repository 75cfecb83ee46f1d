"""The values that cross a stage: Plan -> Rewrite -> Candidate -> Verified -> Committed | Conflicted.

Every value is frozen, names the version it was computed from, and is checked once, at birth.
This module imports nothing heavy: DAGs and pages read it too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, StrEnum

_U64 = (1 << 64) - 1
_FINGERPRINT = re.compile(r"(\d+):([0-9a-f]{16}):([0-9a-f]{16})")


class Operation(StrEnum):
    """What can be done to a table; the values are the command line's."""

    UPGRADE = "upgrade"
    PERSIST_DELETES = "persist-deletes"
    OPTIMIZE = "optimize"


class Outcome(StrEnum):
    """How an operation on a table ended; ordered from mildest to worst."""

    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    VERIFIED = "verified"
    REFUSED = "refused"
    CONFLICTED = "conflicted"
    MISMATCH = "mismatch"
    FAILED = "failed"

    @property
    def exit_status(self) -> int:
        return _EXIT_STATUS.get(self, 0)

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """The worst of `outcomes`; `unchanged` where there are none."""
        order = list(Outcome)
        return max(outcomes, key=order.index, default=Outcome.UNCHANGED)


_EXIT_STATUS = {Outcome.FAILED: 1, Outcome.REFUSED: 3, Outcome.CONFLICTED: 4, Outcome.MISMATCH: 5}


class VerifyLevel(StrEnum):
    """How much the gate hashes: every row of a touched unit, or the rows that moved."""

    FULL = "full"
    TOUCHED = "touched"


class View(Enum):
    """Which logical rows a scan yields."""

    MERGED = "merge-on-read"
    """Every committed row, deletes and newer versions applied by merging."""
    RAW = "raw"
    """Data files through their deletion vectors, nothing merged: what a published reader does."""


@dataclass(frozen=True, slots=True)
class Address:
    """A table: `format:location`, called `name` in reports and policies."""

    format: str
    location: str
    name: str

    def __str__(self) -> str:
        return f"{self.format}:{self.location}"


@dataclass(frozen=True, slots=True, order=True)
class UnitKey:
    """A unit of work: a partition (`dt=2026-01-01`, or empty) and a bucket, where buckets exist."""

    partition: str
    bucket: int | None = None

    def __str__(self) -> str:
        parts = [self.partition] if self.partition else []
        parts += [f"bucket-{self.bucket}"] if self.bucket is not None else []
        return "/".join(parts) or "table"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Order-free content of a multiset of rows: a count and two independent 64-bit sums of row hashes."""

    rows: int = 0
    sum_a: int = 0
    sum_b: int = 0

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.sum_a + other.sum_a) & _U64, (self.sum_b + other.sum_b) & _U64)

    def __sub__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows - other.rows, (self.sum_a - other.sum_a) & _U64, (self.sum_b - other.sum_b) & _U64)

    def __str__(self) -> str:
        return f"{self.rows}:{self.sum_a:016x}:{self.sum_b:016x}"

    @staticmethod
    def parse(text: str) -> Fingerprint:
        """The inverse of str(). Raises ValueError."""
        match = _FINGERPRINT.fullmatch(text)
        if match is None:
            raise ValueError(f"fingerprint {text!r}, expected ROWS:HEX:HEX with 16 digits in each sum")
        return Fingerprint(int(match[1]), int(match[2], 16), int(match[3], 16))


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks of one table; `where` is a partition filter and never changes rows."""

    operation: Operation
    now_ms: int
    where: str | None = None
    full: bool = False
    target_bytes: int | None = None
    allow_compacting_writers: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """Identity of one run over one table. `run_id` survives retries, `attempt` does not.

    File names derive from both, so what a killed attempt leaves behind can be found by name.
    """

    run_id: str
    token: str
    attempt: str
    now_ms: int


def run_token(run_id: str, operation: Operation) -> str:
    """What stands for one operation of a run in file names and commit users: 16 hexadecimal digits."""
    return hashlib.sha256(f"{operation}\n{run_id}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a unit is expected to cost and bring. Bytes on storage; `benefit` is one sentence."""

    read_bytes: int
    written_bytes: int
    files_after: int
    benefit: str


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """One unit of work and why it was picked; `task` is the format's own serialisable description."""

    key: UnitKey
    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: Estimate
    task: object

    def __str__(self) -> str:
        return (
            f"{self.key}: {self.reason}; {len(self.input_files)} files, {self.input_bytes:,} bytes in; "
            f"about {self.estimate.written_bytes:,} bytes out in {self.estimate.files_after} files; "
            f"{self.estimate.benefit}"
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done to one version of one table; printing it is the dry run."""

    table: Address
    operation: Operation
    version: int
    units: tuple[PlannedUnit, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.table.name}: {self.operation} of version {self.version}, {len(self.units)} units"
        return "\n".join([head, *(f"  {unit}" for unit in self.units), *(f"  note: {n}" for n in self.notes)])


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What a task used: wall and CPU seconds, peak resident bytes of its process, and who ran it."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    executor: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A unit's outputs, written but referenced by nothing. `edit` is the format's own change to metadata."""

    key: UnitKey
    edit: object
    outputs: tuple[str, ...]
    rows_written: int
    rows_marked: int
    findings: tuple[str, ...]
    cost: TaskCost


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete version in storage that no reader can see: `version` on top of `parent_version`.

    `metadata` names the staged root of its metadata; `staged` every file written for it, data included.
    """

    table: Address
    version: int
    parent_version: int
    metadata: str
    staged: tuple[str, ...]
    units: tuple[UnitKey, ...]


@dataclass(frozen=True, slots=True)
class UnitProof:
    """Both sides of one unit and every fault found; proven when they are equal and nothing is at fault."""

    key: UnitKey
    base: Fingerprint
    candidate: Fingerprint
    faults: tuple[str, ...]
    cost: TaskCost

    @property
    def proven(self) -> bool:
        return self.base == self.candidate and not self.faults


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The candidate is not proven; it must never be published."""

    proofs: tuple[UnitProof, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """A candidate whose every unit is proven: the only thing that can be published."""

    plan: Plan
    candidate: Candidate
    rewrites: tuple[Rewrite, ...]
    proofs: tuple[UnitProof, ...]
    level: VerifyLevel

    def __post_init__(self) -> None:
        unproven = [str(p.key) for p in self.proofs if not p.proven]
        missing = set(self.candidate.units) - {p.key for p in self.proofs}
        if unproven or missing:
            raise ValueError(f"{self.plan.table.name}: expected every unit proven, found {unproven or missing}")


@dataclass(frozen=True, slots=True)
class Committed:
    """Our version, visible to readers; `conflicted` units were left out of it, each with its reason."""

    version: int
    parent_version: int
    units: tuple[UnitKey, ...]
    conflicted: tuple[tuple[UnitKey, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A lost race: nothing was published for these units, each with its reason."""

    units: tuple[tuple[UnitKey, str], ...]


@dataclass(frozen=True, slots=True)
class FileSizes:
    """What reports say of a version: bytes and level (None without levels) of each live data file, and vectors."""

    bytes: tuple[int, ...] = field(default=())
    levels: tuple[int | None, ...] = field(default=())
    vectors: int = 0
