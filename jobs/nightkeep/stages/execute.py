"""Plan -> one Rewrite per task, or several for a wide task. A `Mapper` and an `Exchange` decide where tasks run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import pyarrow as pa

from nightkeep.model import Plan, Rewrite, Run
from nightkeep.protocol import E, OpenWide, S, T, Table, U, Wide, WideWrites
from nightkeep.protocol.wide import C, G, Q, V
from nightkeep.tasks import CostMeter, Exchange, Mapper, Piece, inline_exchange


def execute(
    table: Table[S, U, T, E], plan: Plan[T | OpenWide], run: Run, *,
    mapper: Mapper, exchange: Exchange = inline_exchange,
) -> tuple[Rewrite[E], ...]:  # fmt: skip
    """The rewrites of all plain tasks, then those of all wide tasks, each in the plan's order.

    No metadata references the new files yet.
    """
    tasks = [task for unit in plan.units for task in unit.tasks]
    wide = [task for task in tasks if isinstance(task, Wide)]
    plain = [task for task in tasks if not isinstance(task, Wide)]
    done = mapper(_RewriteTask(table.rewrite, run), plain, label="rewrite") if plain else []
    for task in wide:
        if table.wide is None:
            raise TypeError(f"{table.address}: expected no wide task, found {task!r:.80}")
        done += _exchanged(table.wide, task, run, mapper=mapper, exchange=exchange)
    return tuple(done)


def _exchanged(
    writes: WideWrites[C, Q, V, G, E], task: Wide[C, Q], run: Run, *, mapper: Mapper, exchange: Exchange
) -> Sequence[Rewrite[E]]:
    """Survey all sources in parallel, compute the ranges, then read all sources and write all ranges in parallel."""
    surveys = mapper(_SurveyTask(writes.survey, task), task.sources, label="survey")
    ranged = writes.ranged(task, surveys)
    scatter, gather = _ScatterTask(writes.scatter, ranged), _GatherTask(writes.gather, ranged, run)
    return exchange(scatter, gather, task.sources, parts=task.parts, label="rewrite")


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
class _SurveyTask(Generic[C, Q, V]):
    survey: Callable[[Wide[C, Q], Q], V]
    task: Wide[C, Q]

    def __call__(self, source: Q) -> V:
        return self.survey(self.task, source)


@dataclass(frozen=True, slots=True)
class _ScatterTask(Generic[G, Q]):
    scatter: Callable[[G, Q], Iterator[tuple[int, int, pa.RecordBatch]]]
    ranged: G

    def __call__(self, source: Q) -> Iterator[Piece]:
        for part, place, rows in self.scatter(self.ranged, source):
            yield Piece(part, place, rows)


@dataclass(frozen=True, slots=True)
class _GatherTask(Generic[G, E]):
    gather: Callable[[G, int, Iterator[tuple[int, pa.RecordBatch]], Run], Rewrite[E]]
    ranged: G
    run: Run

    def __call__(self, part: int, pieces: Iterator[Piece]) -> Rewrite[E]:
        meter = CostMeter()
        rows = ((piece.place, piece.rows) for piece in pieces)
        rewrite = self.gather(self.ranged, part, rows, _own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())
