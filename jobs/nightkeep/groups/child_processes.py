"""Several child processes for the threads of one group: a call takes one that is idle. Each starts with its first call.

The one that was used last is taken first, so that no second one starts while one is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from queue import LifoQueue
from types import TracebackType
from typing import TypeVar

from nightkeep.groups.child_process import ChildProcess

T = TypeVar("T")


class ChildProcesses:
    """At most `count` children. A call waits while all are in use."""

    def __init__(self, count: int) -> None:
        self._stack = ExitStack()
        self._idle = LifoQueue[ChildProcess]()
        for _ in range(count):
            self._idle.put(self._stack.enter_context(ChildProcess()))

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """As `ChildProcess.call`, for any thread."""
        child = self._idle.get()
        try:
            return child.call(subject, work)
        finally:
            self._idle.put(child)
