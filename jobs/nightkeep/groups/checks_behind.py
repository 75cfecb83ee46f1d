"""Work that is done -> its checks, side by side with the work on other tables; results in the order of the work.

A check costs more than the work on a small table, and most of it is planning in one thread of Spark's driver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MOST: Final = 2
"""Checks at once. More would take the cores from the work that they are behind."""
WAITING: Final = 4
"""Unfinished checks at most; with more, the work waits. What is published should not stay unchecked for long."""


class ChecksBehind(Generic[T]):
    """Checks in threads. Leaving the `with` block waits for those that are left, and drops their results."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=MOST, thread_name_prefix="nightkeep-check")
        self._begun = deque[tuple[str, Future[T]]]()

    def __enter__(self) -> ChecksBehind[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def add(self, table: str, check: Callable[[], T]) -> None:
        """Begin a check of `table`, which must not raise."""
        self._begun.append((table, self._threads.submit(check)))

    def put(self, table: str, results: Iterable[T]) -> None:
        """Results that need no check, in their place."""
        for result in results:
            done = Future[T]()
            done.set_result(result)
            self._begun.append((table, done))

    def finished(self) -> Iterator[T]:
        """Results at the front that are there, and further ones while too many checks are left."""
        while self._begun and (self._begun[0][1].done() or self._unfinished() > WAITING):
            yield self._begun.popleft()[1].result()

    def until(self, table: str) -> Iterator[T]:
        """All results up to the last one of `table`, whose next work depends on them."""
        while any(name == table for name, _ in self._begun):
            yield self._begun.popleft()[1].result()

    def rest(self) -> Iterator[T]:
        """All results that are left."""
        while self._begun:
            yield self._begun.popleft()[1].result()

    def _unfinished(self) -> int:
        return sum(not check.done() for _, check in self._begun)
