"""Plan -> Rewrite per unit, as tasks. A `Mapper` decides where they run; nothing here touches metadata."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from nightkeep.model import Plan, Rewrite, Run, TaskCost
from nightkeep.protocol import Table, U

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Protocol):
    """Runs `work` on every item, each as a task of its own, and returns the results in order."""

    def __call__(self, work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]: ...


def inline(work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]:
    """The Mapper without Spark: one item after the other in this process."""
    return [work(item) for item in items]


def execute(table: Table[U], plan: Plan, run: Run, *, mapper: Mapper) -> tuple[Rewrite, ...]:
    """Every unit's rewrite, in the plan's order. Outputs are referenced by nothing when this returns."""
    tasks = [unit.task for unit in plan.units]
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


class CostMeter:
    """What a task uses between construction and `cost()`: wall and CPU seconds, peak resident bytes."""

    def __init__(self) -> None:
        _reset_peak()
        self._started = time.perf_counter()
        self._cpu = time.process_time()

    def cost(self) -> TaskCost:
        return TaskCost(
            seconds=time.perf_counter() - self._started,
            cpu_seconds=time.process_time() - self._cpu,
            peak_bytes=_peak_bytes(),
            executor=f"{socket.gethostname()}:{os.environ.get('SPARK_EXECUTOR_ID', os.getppid())}",
        )


def _reset_peak() -> None:
    # Linux keeps the high-water mark of a reused Spark worker unless it is reset (proc(5), clear_refs 5).
    with suppress(OSError), open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")


def _peak_bytes() -> int:
    with suppress(OSError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
