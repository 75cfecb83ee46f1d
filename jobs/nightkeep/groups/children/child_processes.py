"""Several child processes for the threads of one group: a call takes one that is idle. Each starts with its first call.

The process that was used last is taken first, so that a second starts only if one is not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from queue import LifoQueue
from types import TracebackType
from typing import TypeVar

from nightkeep.errors import Interrupted
from nightkeep.groups.children.child_process import ChildProcess

T = TypeVar("T")


class ChildProcesses:
    """At most `count` children. A call waits while all are in use."""

    def __init__(self, count: int) -> None:
        self._stack = ExitStack()
        self._idle = LifoQueue[ChildProcess]()
        self._children = [self._stack.enter_context(ChildProcess()) for _ in range(count)]
        for child in self._children:
            self._idle.put(child)

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            # Threads may wait for an answer still, so their pipes stay open.
            self.end()
        else:
            self._stack.close()

    def end(self) -> None:
        """End the children for good. Each call, also one that waits, raises KeyboardInterrupt then."""
        for child in self._children:
            child.interrupt()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """As `ChildProcess.call`, for any thread."""
        child = self._idle.get()
        try:
            return child.call(subject, work)
        finally:
            self._idle.put(child)
