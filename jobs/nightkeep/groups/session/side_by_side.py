"""Work on tables -> its results in the order of the tables, while several tables are at work at once.

Most of the work on a small table is planning in one thread of Spark's driver, its check above all: with several tables
at work, the cores have tasks meanwhile. No table waits for another's check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from queue import LifoQueue
from threading import Lock
from typing import Final, TypeVar

from nightkeep.errors import Interrupted
from nightkeep.spark.waiting_threads import waiting_threads

T = TypeVar("T")
S = TypeVar("S")

_BESIDE_CORES: Final = 2
"""Tables at work beyond the cores of this machine: a thread waits for tasks and for storage about as often as it works.
Spark's slots bound what their tasks take: more tables at work mean no more tasks at once, and no more of their memory.
"""
_MOST: Final = 8
"""Tables at work on any machine: the plans of all of them are in the driver's memory."""
_LEAST_SECONDS: Final = 1e-9


def most_at_once() -> int:
    """How many tables are at work at once on this machine."""
    return min(_MOST, len(os.sched_getaffinity(0)) + _BESIDE_CORES)


def side_by_side(
    tables: Sequence[str],
    work: Callable[[str, S], Sequence[T]],
    slots: Sequence[S],
    *,
    first: Callable[[str], float],
    at_work: Callable[[Sequence[str]], None],
    goes_on: Callable[[], bool],
) -> Iterator[T]:
    """The results of `work` on each table, table by table. Each slot is used by one thread at a time.

    Tables begin by `first`, the largest value first. `at_work` gets the tables at work whenever they change.
    No table begins once `goes_on` is false, nor while the caller does not ask for the next result. Leaving early waits
    for the tables at work; a signal that ends the process does not.
    """
    waiting = sorted(tables, key=first, reverse=True)
    order, running, done = list(tables), dict[Future[Sequence[T]], str](), dict[str, Future[Sequence[T]]]()
    idle = LifoQueue[S]()
    for slot in slots:
        idle.put(slot)

    def on_a_slot(table: str) -> Sequence[T]:
        slot = idle.get()
        try:
            return work(table, slot)
        finally:
            idle.put(slot)

    with waiting_threads(len(slots), left_after=(Interrupted,), name="nightkeep-table") as threads:
        while order:
            while waiting and len(running) < len(slots) and goes_on():
                table = waiting.pop(0)
                at_work([*running.values(), table])
                running[threads.submit(on_a_slot, table)] = table
            if not running:
                return
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            done |= {running.pop(each): each for each in ended}
            while order and order[0] in done:
                yield from done.pop(order.pop(0)).result()
            at_work([*running.values()])


class SharedTime:
    """A clock that each table at work slows down for the others. For any threads.

    Tables at work at once share each second evenly. So the seconds of all tables add up to those of the session, as
    those of a prediction do: a budget's time is that of sessions.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._lock = clock, Lock()
        self._at_work, self._shared, self._last = 0, 0.0, clock()

    @contextmanager
    def at_work(self) -> Iterator[Callable[[], float]]:
        """In the `with` block, a table is at work. Yields a function: the share of the time since then that was its
        own, from 0 to 1."""
        shared, started = self._moved(1)

        def share() -> float:
            now_shared, now = self._moved(0)
            return (now_shared - shared) / (now - started) if now - started > _LEAST_SECONDS else 1.0

        try:
            yield share
        finally:
            self._moved(-1)

    def _moved(self, tables: int) -> tuple[float, float]:
        """The shared time and the wall time now, before as many more tables are at work."""
        with self._lock:
            now = self._clock()
            self._shared += (now - self._last) / max(1, self._at_work)
            self._last = now
            self._at_work += tables
            return self._shared, now
