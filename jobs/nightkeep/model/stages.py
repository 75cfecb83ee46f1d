"""The values that cross a stage: Plan -> Rewrite -> Candidate -> Verified -> Committed | Conflicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from nightkeep.model.counted import counted
from nightkeep.model.identity import Address, Fingerprint, UnitKey, VerifyLevel, VersionIdentity
from nightkeep.model.operations import Operation

T_co = TypeVar("T_co", covariant=True)
"""A format's own description of a task. Pickles."""
E_co = TypeVar("E_co", covariant=True)
"""A format's own change to metadata, the result of one task. Pickles."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost and benefit of a unit. Bytes are sizes on storage; `benefit` is one sentence.

    `written_bytes` are those of all new files, `files_after` counts those that take the place of the input.
    `more_files` and `more_bytes` are what the data files of the table grow by: less than 0 where they shrink.
    """

    read_bytes: int
    written_bytes: int
    files_after: int
    benefit: str
    more_files: int = 0
    more_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PlannedUnit(Generic[T_co]):
    """One unit of work, and why it was picked.

    A unit's tasks are independent of each other; their rewrites are proven and published together. Units with the same
    `together` are published together too, because only a commit of all of them completes the work. `measures` are
    figures of the unit as it is, JSON values.
    """

    key: UnitKey
    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: Estimate
    tasks: tuple[T_co, ...]
    together: str | None = None
    measures: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.key}: {self.reason}; {counted(len(self.input_files), 'file')}, {self.input_bytes:,} bytes in; "
            f"about {self.estimate.written_bytes:,} bytes out in {counted(self.estimate.files_after, 'file')}; "
            f"{self.estimate.benefit}"
        )


class CommitScope(Enum):
    """What a unit that loses a race takes with it from the same plan."""

    EACH_UNIT = "each unit"
    """Nothing: a unit is right with or without the others. So are rewrites that keep the rows."""
    WHOLE_PLAN = "whole plan"
    """Everything: the units are one change of rows, published in one commit or not at all. A part of it could not be
    completed later: another run would change the same rows twice."""


@dataclass(frozen=True, slots=True)
class Plan(Generic[T_co]):
    """The work on one version, `base`, of one table. Printing it is the dry run.

    `rows`: the condition on the rows to delete, or, with `sets`, to update. A plan without it changes no row.
    `clock_ms`: the time that the table's own rule on the age of rows goes by, from planning to the check; None if none
    of its rows expire.
    """

    table: Address
    operation: Operation
    base: VersionIdentity
    units: tuple[PlannedUnit[T_co], ...]
    notes: tuple[str, ...] = ()
    rows: str | None = None
    sets: tuple[str, ...] = ()
    clock_ms: int | None = None

    @property
    def version(self) -> int:
        return self.base.version

    @property
    def commit_scope(self) -> CommitScope:
        return CommitScope.EACH_UNIT if self.rows is None else CommitScope.WHOLE_PLAN

    def __str__(self) -> str:
        head = f"{self.table.name}: {self.operation} of version {self.version}, {counted(len(self.units), 'unit')}"
        return "\n".join([head, *(f"  {unit}" for unit in self.units), *(f"  note: {n}" for n in self.notes)])


@dataclass(frozen=True, slots=True)
class TaskCost:
    """What a task used: wall and CPU seconds, peak resident bytes of its process, and the executor that ran it."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    executor: str


@dataclass(frozen=True, slots=True)
class Rewrite(Generic[E_co]):
    """What one task wrote. No metadata references it yet."""

    key: UnitKey
    edit: E_co
    outputs: tuple[str, ...]
    rows_written: int
    rows_marked: int
    findings: tuple[str, ...]
    cost: TaskCost
    rows_expired: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete version in storage that no reader can see yet: `version`, valid only on top of `parent`.

    `metadata` names the staged root of its metadata. `staged` names every file written for it, data files included.
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
    """The fingerprints of both sides of one unit, and its faults. Proven if the sides are equal without a fault."""

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
    """A candidate with every unit proven. Only this can be published."""

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
    """Our version, visible to readers. `conflicted` units were left out of it, each with the reason; there are none if
    the plan's scope is the whole plan.

    `parent` is None if it is no longer known. `undermined` is set if the table was rolled back or created anew during
    the commit: the version then does not show the table's content.
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
    """The sizes of a version for reports: bytes and level (None without levels) of each live data file, and vectors."""

    bytes: tuple[int, ...] = field(default=())
    levels: tuple[int | None, ...] = field(default=())
    vectors: int = 0
