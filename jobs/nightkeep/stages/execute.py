"""Plan -> one Rewrite per task, or several for a wide task. A `Mapper` and an `Exchange` decide where tasks run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from nightkeep.model import Plan, Rewrite, Run
from nightkeep.protocol import E, S, T, Wide, WideWrites, Writes
from nightkeep.tasks import CostMeter, Exchange, Mapper, Piece, inline_exchange


def execute(
    table: Writes[S, T, E], plan: Plan[T | Wide], run: Run, *, mapper: Mapper, exchange: Exchange = inline_exchange
) -> tuple[Rewrite[E], ...]:
    """The rewrites of all plain tasks, then those of all wide tasks, each in the plan's order.

    No metadata references the new files yet.
    """
    tasks = [task for unit in plan.units for task in unit.tasks]
    wide = [task for task in tasks if isinstance(task, Wide)]
    plain = [task for task in tasks if not isinstance(task, Wide)]
    done = mapper(_RewriteTask(table, run), plain, label="rewrite") if plain else []
    for task in wide:
        assert isinstance(table, WideWrites)
        done += _exchanged(table, task, run, mapper=mapper, exchange=exchange)
    return tuple(done)


def _exchanged(
    table: WideWrites[E], task: Wide, run: Run, *, mapper: Mapper, exchange: Exchange
) -> Sequence[Rewrite[E]]:
    """Survey all sources in parallel, compute the ranges, then read all sources and write all ranges in parallel."""
    surveys = mapper(_SurveyTask(table, task), task.sources, label="survey")
    ranged = table.ranged(task, surveys)
    scatter, gather = _ScatterTask(table, ranged), _GatherTask(table, ranged, run)
    return exchange(scatter, gather, task.sources, parts=task.parts, label="rewrite")


def _own_attempt(run: Run) -> Run:
    # Spark may run a task twice (retry, speculation), and the file names of a unit's tasks differ only by the attempt.
    # Each try of each task must have its own file names.
    return replace(run, attempt=f"{run.attempt}{os.urandom(6).hex()}")


@dataclass(frozen=True, slots=True)
class _RewriteTask(Generic[S, T, E]):
    table: Writes[S, T, E]
    run: Run

    def __call__(self, task: T) -> Rewrite[E]:
        meter = CostMeter()
        rewrite = self.table.rewrite(task, _own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())


@dataclass(frozen=True, slots=True)
class _SurveyTask(Generic[E]):
    table: WideWrites[E]
    task: Wide

    def __call__(self, source: object) -> object:
        return self.table.survey(self.task, source)


@dataclass(frozen=True, slots=True)
class _ScatterTask(Generic[E]):
    table: WideWrites[E]
    ranged: object

    def __call__(self, source: object) -> Iterator[Piece]:
        for part, place, rows in self.table.scatter(self.ranged, source):
            yield Piece(part, place, rows)


@dataclass(frozen=True, slots=True)
class _GatherTask(Generic[E]):
    table: WideWrites[E]
    ranged: object
    run: Run

    def __call__(self, part: int, pieces: Iterator[Piece]) -> Rewrite[E]:
        meter = CostMeter()
        rows = ((piece.place, piece.rows) for piece in pieces)
        rewrite = self.table.gather(self.ranged, part, rows, run=_own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())
