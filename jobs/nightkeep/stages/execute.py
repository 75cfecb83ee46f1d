"""Plan -> Rewrite per task, or several for a wide one. A `Mapper` and an `Exchange` decide where they run."""

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
    """The rewrite of every task, and those of every wide task, each in the plan's order.

    Outputs are referenced by nothing when this returns. Nothing here touches metadata.
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
    """Look at every source, then read them side by side and write range after range, side by side too."""
    surveys = mapper(_SurveyTask(table, task), task.sources, label="survey")
    ranged = table.ranged(task, surveys)
    scatter, gather = _ScatterTask(table, ranged), _GatherTask(table, ranged, run)
    return exchange(scatter, gather, task.sources, parts=task.parts, label="rewrite")


def _own_attempt(run: Run) -> Run:
    # Spark may run a task twice (retry, speculation), and tasks of one unit share its names: each try of each must
    # own its file names.
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
