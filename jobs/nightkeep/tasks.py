"""Items -> results, one task each. A `Mapper` decides where tasks run; a `CostMeter` measures what a task used."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from nightkeep.model import TaskCost

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Protocol):
    """Runs `work` on every item, each as a task of its own, and returns the results in order."""

    def __call__(self, work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]: ...


def inline(work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]:
    """The Mapper without Spark: one item after the other in this process."""
    return [work(item) for item in items]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows on their way to writer `part` (0-based), which gets its pieces by `place`. Columns may be of any type."""

    part: int
    place: int
    rows: pa.RecordBatch


Scatter = Callable[[T], Iterator[Piece]]
"""Reads one source, piece by piece. A second call for the same source yields the same rows at the same places."""
Gather = Callable[[int, Iterator[Piece]], R]
"""Processes one part with all its pieces. It may be called again, with the same rows."""


class Exchange(Protocol):
    """Reads every source as a task of its own, and calls `gather` for each of `parts` parts as a task of its own.

    Results come in the order of the parts; a part that no row goes to is gathered from nothing. Pieces of equal
    place come in any order. Raises ValueError for a piece whose part does not exist.
    """

    def __call__(
        self, scatter: Scatter[T], gather: Gather[R], sources: Sequence[T], *, parts: int, label: str
    ) -> list[R]: ...


def inline_exchange(scatter: Scatter[T], gather: Gather[R], sources: Sequence[T], *, parts: int, label: str) -> list[R]:
    """The Exchange without Spark: everything in this process, and in its memory."""
    pieces = sorted((piece for source in sources for piece in scatter(source)), key=lambda piece: piece.place)
    for piece in pieces:
        require_part(piece, parts)
    return [gather(part, (piece for piece in pieces if piece.part == part)) for part in range(parts)]


def require_part(piece: Piece, parts: int) -> None:
    """Raise ValueError unless the piece's part is one of `parts`: a modulo would hide a wrong one."""
    if not 0 <= piece.part < parts:
        raise ValueError(f"a piece for part {piece.part}, expected one of {parts}")


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
