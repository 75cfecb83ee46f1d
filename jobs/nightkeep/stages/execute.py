"""Plan -> Rewrite per task, or several for a wide one. A `Mapper` and an `Exchange` decide where they run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nightkeep.model import Plan, Rewrite, Run
from nightkeep.protocol import Table, U, Wide, WideWrites
from nightkeep.tasks import CostMeter, Exchange, Mapper, Piece, inline_exchange


def execute(
    table: Table[U], plan: Plan, run: Run, *, mapper: Mapper, exchange: Exchange = inline_exchange
) -> tuple[Rewrite, ...]:
    """The rewrite of every task, and those of every wide task, each in the plan's order.

    Outputs are referenced by nothing when this returns. Nothing here touches metadata.
    """
    tasks = [task for unit in plan.units for task in unit.tasks]
    wide = [task for task in tasks if isinstance(task, Wide)]
    plain = [task for task in tasks if not isinstance(task, Wide)]
    done = mapper(_RewriteTask(table, run), plain, label="rewrite") if plain else []
    for task in wide:
        done += _exchanged(table, task, run, mapper=mapper, exchange=exchange)
    return tuple(done)


def _exchanged(table: object, task: Wide, run: Run, *, mapper: Mapper, exchange: Exchange) -> Sequence[Rewrite]:
    """Look at every source, then read them side by side and write range after range, side by side too."""
    assert isinstance(table, WideWrites)
    surveys = mapper(_SurveyTask(table, task), task.sources, label="survey")
    ranged = table.ranged(task, surveys)
    scatter, gather = _ScatterTask(table, ranged), _GatherTask(table, ranged, run)
    return exchange(scatter, gather, task.sources, parts=task.parts, label="rewrite")


def _own_attempt(run: Run) -> Run:
    # Spark may run a task twice (retry, speculation), and tasks of one unit share its names: each try of each must
    # own its file names.
    return replace(run, attempt=f"{run.attempt}{os.urandom(6).hex()}")


@dataclass(frozen=True, slots=True)
class _RewriteTask:
    table: object
    run: Run

    def __call__(self, task: object) -> Rewrite:
        meter = CostMeter()
        rewrite: Rewrite = self.table.rewrite(task, _own_attempt(self.run))  # type: ignore[attr-defined]
        return replace(rewrite, cost=meter.cost())


@dataclass(frozen=True, slots=True)
class _SurveyTask:
    table: WideWrites
    task: Wide

    def __call__(self, source: object) -> object:
        return self.table.survey(self.task, source)


@dataclass(frozen=True, slots=True)
class _ScatterTask:
    table: WideWrites
    ranged: object

    def __call__(self, source: object) -> Iterator[Piece]:
        for part, place, rows in self.table.scatter(self.ranged, source):
            yield Piece(part, place, rows)


@dataclass(frozen=True, slots=True)
class _GatherTask:
    table: WideWrites
    ranged: object
    run: Run

    def __call__(self, part: int, pieces: Iterator[Piece]) -> Rewrite:
        meter = CostMeter()
        rows = ((piece.place, piece.rows) for piece in pieces)
        rewrite = self.table.gather(self.ranged, part, rows, run=_own_attempt(self.run))
        return replace(rewrite, cost=meter.cost())
