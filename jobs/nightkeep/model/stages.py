"""The values that cross a stage: Plan -> Rewrite -> Candidate -> Verified -> Committed | Conflicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from nightkeep.model.identity import Address, Fingerprint, Operation, UnitKey, VerifyLevel, VersionIdentity

T_co = TypeVar("T_co", covariant=True)
"""A format's own description of a task. It pickles."""
E_co = TypeVar("E_co", covariant=True)
"""A format's own change to metadata: what one task makes of its inputs. It pickles."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a unit is expected to cost and bring. Bytes on storage; `benefit` is one sentence."""

    read_bytes: int
    written_bytes: int
    files_after: int
    benefit: str


@dataclass(frozen=True, slots=True)
class PlannedUnit(Generic[T_co]):
    """One unit of work and why it was picked.

    A unit's tasks are independent of each other; what they rewrite is proven and published together. So are units
    with one value of `together`, which share what only a commit of all of them can finish.
    """

    key: UnitKey
    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: Estimate
    tasks: tuple[T_co, ...]
    together: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.key}: {self.reason}; {len(self.input_files)} files, {self.input_bytes:,} bytes in; "
            f"about {self.estimate.written_bytes:,} bytes out in {self.estimate.files_after} files; "
            f"{self.estimate.benefit}"
        )


@dataclass(frozen=True, slots=True)
class Plan(Generic[T_co]):
    """What would be done to one version of one table, `base`; printing it is the dry run.

    `rows`: a condition on rows that are to go; by all other plans no row does.
    """

    table: Address
    operation: Operation
    base: VersionIdentity
    units: tuple[PlannedUnit[T_co], ...]
    notes: tuple[str, ...] = ()
    rows: str | None = None

    @property
    def version(self) -> int:
        return self.base.version

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
class Rewrite(Generic[E_co]):
    """What one task wrote, referenced by nothing yet."""

    key: UnitKey
    edit: E_co
    outputs: tuple[str, ...]
    rows_written: int
    rows_marked: int
    findings: tuple[str, ...]
    cost: TaskCost


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete version in storage that no reader can see: `version` on top of `parent`, and of no other version.

    `metadata` names the staged root of its metadata; `staged` every file written for it, data included.
    """

    table: Address
    version: int
    parent: VersionIdentity
    metadata: str
    staged: tuple[str, ...]
    units: tuple[UnitKey, ...]

    @property
    def parent_version(self) -> int:
        return self.parent.version


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
class Verified(Generic[T_co, E_co]):
    """A candidate whose every unit is proven: the only thing that can be published."""

    plan: Plan[T_co]
    candidate: Candidate
    rewrites: tuple[Rewrite[E_co], ...]
    proofs: tuple[UnitProof, ...]
    level: VerifyLevel

    def __post_init__(self) -> None:
        unproven = [str(p.key) for p in self.proofs if not p.proven]
        missing = set(self.candidate.units) - {p.key for p in self.proofs}
        if unproven or missing:
            raise ValueError(f"{self.plan.table.name}: expected every unit proven, found {unproven or missing}")


@dataclass(frozen=True, slots=True)
class Committed:
    """Our version, visible to readers; `conflicted` units were left out of it, each with its reason.

    `parent` is None where its parent is not known any more. `undermined` says that the table was rolled back, or
    created anew, while the version was committed: what it shows is not what the table held.
    """

    identity: VersionIdentity
    parent_version: int
    units: tuple[UnitKey, ...]
    conflicted: tuple[tuple[UnitKey, str], ...] = ()
    parent: VersionIdentity | None = None
    undermined: str | None = None

    @property
    def version(self) -> int:
        return self.identity.version


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
