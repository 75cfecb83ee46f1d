"""What a format provides for tasks that do not fit into one task's memory: their rows move through an exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NewType, TypeVar

import pyarrow as pa

from nightkeep.model import Rewrite, Run

E = TypeVar("E")
C = TypeVar("C")
"""A format's own task."""
Q = TypeVar("Q")
"""A source of the task's rows."""
V = TypeVar("V")
"""A sample of one source."""
G = TypeVar("G")
"""The task with its ranges: which rows go to which part."""
C_co = TypeVar("C_co", covariant=True)
Q_co = TypeVar("Q_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Wide(Generic[C_co, Q_co]):
    """A task of Work that does not fit into one task's memory, for a table with WideWrites.

    Its `sources` are read in parallel, and their rows are exchanged by range between `parts` writers.
    """

    task: C_co
    sources: tuple[Q_co, ...]
    parts: int


@dataclass(frozen=True, slots=True)
class WideWrites(Generic[C, Q, V, G, E]):
    """Functions that do a wide task. They, sources, surveys and ranged tasks pickle."""

    survey: Callable[[Wide[C, Q], Q], V]
    """A sample of one source, for `ranged`."""
    ranged: Callable[[Wide[C, Q], Sequence[V]], G]
    """The task with its ranges. The surveys are in the order of the sources."""
    scatter: Callable[[G, Q], Iterator[tuple[int, int, pa.RecordBatch]]]
    """A source's rows as (part, place, rows). Rows of part k + 1 sort after those of part k, and within a part rows
    sort by place.

    A second call for the same source yields the same rows."""
    gather: Callable[[G, int, Iterator[tuple[int, pa.RecordBatch]], Run], Rewrite[E]]
    """Writes all rows of one part, by ascending place, to files that no metadata references yet."""


SomeWideTask = NewType("SomeWideTask", object)
"""The task of a Wide of any format. Only that format looks into it, its sources, their surveys and its ranges."""
SomeWideSource = NewType("SomeWideSource", object)
SomeSurvey = NewType("SomeSurvey", object)
SomeRanged = NewType("SomeRanged", object)
OpenWide = Wide[SomeWideTask, SomeWideSource]
OpenWideWrites = WideWrites[SomeWideTask, SomeWideSource, SomeSurvey, SomeRanged, E]
