"""Plan -> one Rewrite per task, or several for a wide task. A `Mapper` and an `Exchange` decide where tasks run."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Generic

import pyarrow as pa

from nightkeep.model import Plan, Rewrite, Run
from nightkeep.protocol import E, OpenWide, S, T, Table, U, Wide, WideWrites
from nightkeep.protocol.wide import C, G, Q, V
from nightkeep.tasks import CostMeter, Exchange, Mapper, Piece, inline_exchange

ROUND_PARTS: Final = 64
"""Wide tasks go through the exchange together up to this many parts, so that cores do not wait for each task's last
source and last part. A part is about a file of the target size; the rows of a round are on Spark's local disks."""


def execute(
    table: Table[S, U, T, E],
    plan: Plan[T | OpenWide],
    run: Run,
    *,
    mapper: Mapper,
    exchange: Exchange = inline_exchange,
) -> tuple[Rewrite[E], ...]:
    """The rewrites of all plain tasks, then those of all wide tasks, each in the plan's order.

    No metadata references the new files yet.
    """
    tasks = [task for unit in plan.units for task in unit.tasks]
    wide = [task for task in tasks if isinstance(task, Wide)]
    plain = [task for task in tasks if not isinstance(task, Wide)]
    done = mapper(_RewriteTask(table.rewrite, run), plain, label="rewrite") if plain else []
    for some in _rounds(wide):
        if table.wide is None:
            raise TypeError(f"{table.address}: expected no wide task, found {some[0]!r:.80}")
        done += _exchanged(table.wide, some, run, mapper=mapper, exchange=exchange)
    return tuple(done)


def _rounds(tasks: Sequence[OpenWide]) -> Iterator[tuple[OpenWide, ...]]:
    """The tasks in order, as many together as have ROUND_PARTS parts; at least one."""
    some: list[OpenWide] = []
    for task in tasks:
        if some and sum(each.parts for each in some) + task.parts > ROUND_PARTS:
            yield tuple(some)
            some = []
        some.append(task)
    if some:
        yield tuple(some)


def _exchanged(
    writes: WideWrites[C, Q, V, G, E], tasks: Sequence[Wide[C, Q]], run: Run, *, mapper: Mapper, exchange: Exchange
) -> Sequence[Rewrite[E]]:
    """Survey all sources in parallel, compute the ranges, then read all sources and write all ranges in parallel."""
    sources = [_SourceOf(number, source) for number, task in enumerate(tasks) for source in task.sources]
    surveys = mapper(_SurveyTask(writes.survey, tuple(tasks)), sources, label="survey")
    ends = tuple(accumulate(len(task.sources) for task in tasks))
    ranged = tuple(
        writes.ranged(task, surveys[end - len(task.sources) : end]) for task, end in zip(tasks, ends, strict=True)
    )
    firsts = tuple(accumulate((task.parts for task in tasks), initial=0))
    scatter, gather = (_ScatterTask(writes.scatter, ranged, firsts), _GatherTask(writes.gather, ranged, firsts, run))
    return exchange(scatter, gather, sources, parts=firsts[-1], label="rewrite")


def _own_attempt(run: Run) -> Run:
    # Spark may run a task twice (retry, speculation), and the file names of a unit's tasks differ only by the attempt.
    # Each try of each task must have its own file names.
    return replace(run, attempt=f"{run.attempt}{os.urandom(6).hex()}")


@dataclass(frozen=True, slots=True)
class _RewriteTask(Generic[T, E]):
    rewrite: Callable[[T, Run], Rewrite[E]]
    run: Run

    def __call__(self, task: T) -> Rewrite[E]:
        meter = CostMeter()
        rewrite = self.rewrite(task, _own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())


@dataclass(frozen=True, slots=True)
class _SourceOf(Generic[Q]):
    """A source of the task with this number in its round."""

    number: int
    source: Q


@dataclass(frozen=True, slots=True)
class _SurveyTask(Generic[C, Q, V]):
    survey: Callable[[Wide[C, Q], Q], V]
    tasks: tuple[Wide[C, Q], ...]

    def __call__(self, item: _SourceOf[Q]) -> V:
        return self.survey(self.tasks[item.number], item.source)


@dataclass(frozen=True, slots=True)
class _ScatterTask(Generic[G, Q]):
    """`firsts` has the number of each task's first part in its round, and then of all parts."""

    scatter: Callable[[G, Q], Iterator[tuple[int, int, pa.RecordBatch]]]
    ranged: tuple[G, ...]
    firsts: tuple[int, ...]

    def __call__(self, item: _SourceOf[Q]) -> Iterator[Piece]:
        first = self.firsts[item.number]
        for part, place, rows in self.scatter(self.ranged[item.number], item.source):
            yield Piece(first + part, place, rows)


@dataclass(frozen=True, slots=True)
class _GatherTask(Generic[G, E]):
    """`firsts` as in _ScatterTask."""

    gather: Callable[[G, int, Iterator[tuple[int, pa.RecordBatch]], Run], Rewrite[E]]
    ranged: tuple[G, ...]
    firsts: tuple[int, ...]
    run: Run

    def __call__(self, part: int, pieces: Iterator[Piece]) -> Rewrite[E]:
        meter = CostMeter()
        number = bisect_right(self.firsts, part) - 1
        rows = ((piece.place, piece.rows) for piece in pieces)
        rewrite = self.gather(self.ranged[number], part - self.firsts[number], rows, _own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())
