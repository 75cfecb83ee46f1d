"""Plan -> Rewrite per task. A `Mapper` decides where they run; nothing here touches metadata."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from nightkeep.model import Plan, Rewrite, Run
from nightkeep.protocol import Table, U
from nightkeep.tasks import CostMeter, Mapper


def execute(table: Table[U], plan: Plan, run: Run, *, mapper: Mapper) -> tuple[Rewrite, ...]:
    """The rewrite of every task, in the plan's order. Outputs are referenced by nothing when this returns."""
    tasks = [task for unit in plan.units for task in unit.tasks]
    return tuple(mapper(_RewriteTask(table, run), tasks, label="rewrite"))


@dataclass(frozen=True, slots=True)
class _RewriteTask:
    table: object
    run: Run

    def __call__(self, task: object) -> Rewrite:
        # Spark may run a task twice (retry, speculation): each try must own its file names.
        run = replace(self.run, attempt=f"{self.run.attempt}{os.urandom(2).hex()}")
        meter = CostMeter()
        rewrite: Rewrite = self.table.rewrite(task, run)  # type: ignore[attr-defined]
        return replace(rewrite, cost=meter.cost())
