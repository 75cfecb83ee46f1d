"""What a version is made of, and which work an operation finds in it: snapshot -> units -> work -> tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NewType, Protocol, TypeVar

from nightkeep.model import Estimate, FileSizes, Request, UnitKey, VersionIdentity


class Unit(Protocol):
    """Files that are read, rewritten and proven together."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def partition(self) -> Mapping[str, object]:
        """Typed partition values by column name; empty for an unpartitioned table."""


class Snapshot(Protocol):
    """One version of one table, from metadata only."""

    @property
    def version(self) -> int: ...

    @property
    def identity(self) -> VersionIdentity:
        """What tells this version apart from every other one of its number, decoded from the bytes that were read."""

    @property
    def sizes(self) -> FileSizes: ...

    @property
    def changes_rows(self) -> bool:
        """Whether its own commit says that it changed rows, not only where they lie."""

    @property
    def partition_columns(self) -> tuple[str, ...]: ...


S = TypeVar("S", bound=Snapshot)
U = TypeVar("U", bound=Unit)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E")

SomeTask = NewType("SomeTask", object)
"""A task of a table that was opened by its address: nobody but its own format looks into it."""
SomeEdit = NewType("SomeEdit", object)
"""An edit of such a table."""


@dataclass(frozen=True, slots=True)
class Work(Generic[T_co]):
    """What a rule wants done to a unit, in independent tasks; `reason` is the sentence that the dry run prints.

    Units with the same `together` are committed together, whatever their size.
    """

    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: Estimate
    tasks: tuple[T_co, ...]
    together: str | None = None


@dataclass(frozen=True, slots=True)
class Wide:
    """A task of Work beyond one task's memory, for a table with WideWrites.

    Its `sources` are read side by side, and their rows exchanged by range to `parts` writers. `task` is the format's.
    """

    task: object
    sources: tuple[object, ...]
    parts: int


@dataclass(frozen=True, slots=True)
class OperationRules(Generic[S, U, T]):
    """One operation of one format: what is refused before any work, and which work a unit deserves.

    `refuse` raises RefusedTable; `rules` are tried in order and the first that answers wins; `notes` are what an
    operator should know of a table that has work: sentences, or None. `left_out` says which units no rule is asked for.
    """

    refuse: tuple[Callable[[S, Request], None], ...]
    rules: tuple[Callable[[S, U, Request], Work[T | Wide] | None], ...]
    notes: tuple[Callable[[S], str | None], ...] = ()
    left_out: Callable[[S], str | None] | None = None
