"""Snapshot -> units -> work -> tasks: the parts of a version, and the work that an operation finds in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NewType, Protocol, TypeVar

from nightkeep.model import Estimate, FileSizes, Request, UnitKey, VersionIdentity
from nightkeep.protocol.wide import OpenWide


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
        """Distinguishes this version from any other with the same number. Computed from the bytes that were read."""

    @property
    def sizes(self) -> FileSizes: ...

    @property
    def changes_rows(self) -> bool:
        """Whether its commit states that it changed rows, and not only their layout."""

    @property
    def partition_columns(self) -> tuple[str, ...]: ...


U_co = TypeVar("U_co", covariant=True)


class OfUnits(Protocol[U_co]):
    """A snapshot with its units."""

    @property
    def units(self) -> Sequence[U_co]: ...


def units_of(snapshot: OfUnits[U_co]) -> Sequence[U_co]:
    return snapshot.units


S = TypeVar("S", bound=Snapshot)
U = TypeVar("U", bound=Unit)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E")

SomeTask = NewType("SomeTask", object)
"""A task of a table of any format. Only that format looks into it."""
SomeEdit = NewType("SomeEdit", object)
"""An edit of such a table's metadata."""


@dataclass(frozen=True, slots=True)
class Work(Generic[T_co]):
    """The independent tasks that a rule asks for in a unit. `reason` is the sentence that the dry run prints.

    Units with the same `together` are committed together, whatever their size. `measures` are figures of the unit as it
    is, JSON values, for the plan's document.
    """

    reason: str
    input_files: tuple[str, ...]
    input_bytes: int
    estimate: Estimate
    tasks: tuple[T_co, ...]
    together: str | None = None
    measures: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperationRules(Generic[S, U, T]):
    """One operation of one format: what it refuses before any work, and which work it finds in a unit.

    `refuse` raises RefusedTable. `rules` are tried in order; the first that returns work wins. `notes` are sentences
    for the operator about a table that has work, or None. `left_out` is such a sentence about what no rule works on,
    also of a table without work. `clock` is the time, in milliseconds, by which rows expire; None for a table whose
    rows do not.
    """

    refuse: tuple[Callable[[S, Request], None], ...]
    rules: tuple[Callable[[S, U, Request], Work[T | OpenWide] | None], ...]
    notes: tuple[Callable[[S], str | None], ...] = ()
    left_out: Callable[[S], str | None] | None = None
    clock: Callable[[S, Request], int | None] | None = None
