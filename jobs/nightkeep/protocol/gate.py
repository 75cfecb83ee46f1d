"""What a format provides for the gate: how to read the rows of a unit, and which faults to look for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa

from nightkeep.model import UnitKey, View
from nightkeep.protocol.positions import Positions
from nightkeep.protocol.work import S, T, U

Show = Callable[[pa.RecordBatch], None]
"""Gets rows as they are decoded."""


def no_rows(unit: object, view: View) -> Iterator[pa.RecordBatch]:
    """For a format whose readers see rows as they are stored."""
    return iter(())


def stored_rows(unit: object) -> View:
    """For a format whose readers do not merge files."""
    return View.RAW


def no_changes(base: object, candidate: object) -> Iterator[pa.RecordBatch]:
    """For a format whose versions report no changes."""
    return iter(())


def no_changelog(candidate: object) -> Iterator[pa.RecordBatch]:
    """For a format whose versions report no changes."""
    return iter(())


def in_one(unit: T, task_bytes: int) -> T:
    """For a format whose gate needs little memory, whatever the size of a unit."""
    return unit


def no_clock(version: object) -> int | None:
    """For a format whose rows do not expire."""
    return None


def every_row(unit: object, rows: pa.RecordBatch, clock_ms: int) -> pa.RecordBatch:
    """For a format whose rows do not expire."""
    return rows


@dataclass(frozen=True, slots=True)
class Gate(Generic[S, U]):
    """Functions of a format's room `gate`, which imports no rewrite or commit code. Pickles, as proofs are tasks."""

    survivors: Callable[[U, View], Positions]
    """The rows that a reader with this view sees as they are stored, as positions in the unit's data files. Reads at
    most key columns. With those of `merged`, they are all that the reader sees."""
    rows: Callable[[U, Positions], Iterator[pa.RecordBatch]]
    """The rows at these positions, every column, cast to the table's logical types; order does not matter. Texts and
    bytes may be Arrow's views."""
    pieces: Callable[[U, U], Sequence[tuple[U, U]]]
    """Divides a unit of the base and of the candidate into pairs of parts that can be proven independently.

    Files that both sides share are in the same pair. Each row of a side is in exactly one part. A unit that must be
    read as a whole is the only pair."""
    unit_faults: Callable[[U, U, Positions, Show], tuple[str, ...]]
    """Faults in the files of the second unit, the candidate's: statistics, ranges, levels, vectors. Reads the staged
    bytes, and shows the candidate's rows at these positions, as `rows` returns them: so that a new file need be decoded
    only once."""
    faults: Callable[[S, S, Sequence[UnitKey]], tuple[str, ...]]
    """Faults of the second version as a whole, whose parent is the first: counts that disagree, and changes outside of
    the touched units."""
    shown: Callable[[U], frozenset[Hashable]]
    """The pieces of a unit that a reader with the published view sees: files with their levels, vectors by name and
    range."""
    published: Callable[[U], View] = stored_rows
    """The view that readers of the published version have of a unit."""
    merged: Callable[[U, View], Iterator[pa.RecordBatch]] = no_rows
    """The rows that a reader with this view makes of several stored rows, such as the sum of two: every column, cast
    to the table's logical types; order does not matter. They have no position, so they are hashed at every level."""
    changes: Callable[[U, U], Iterator[pa.RecordBatch]] = no_changes
    """The changes that a version must report to streaming readers which saw the first unit, so that they then see the
    second, the candidate's: the kind of a change, what orders it, every column; order does not matter. They follow from
    the rows that raw readers see of both."""
    changelog: Callable[[U], Iterator[pa.RecordBatch]] = no_changelog
    """The changes that the candidate's own files report, in the same form."""
    within: Callable[[U, int], U] = in_one
    """The unit, for the functions above to hold about so many bytes in memory at most. They find the same."""
    clock: Callable[[S], int | None] = no_clock
    """The time, in milliseconds, by which the candidate's commit states that rows expired; None if it does not."""
    unexpired: Callable[[U, pa.RecordBatch, int], pa.RecordBatch] = every_row
    """Rows that readers of the base see -> those that the table's rule on their age leaves at this time."""
