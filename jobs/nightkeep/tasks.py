"""Items -> results, one task each. A `Mapper` decides where tasks run, a `CostMeter` what each of them used."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from nightkeep.model import TaskCost

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Protocol):
    """Runs `work` on every item, each as a task of its own, and returns the results in order."""

    def __call__(self, work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]: ...


def inline(work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]:
    """The Mapper without Spark: one item after the other in this process."""
    return [work(item) for item in items]


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
