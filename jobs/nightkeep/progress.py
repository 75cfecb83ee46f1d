"""What is at work -> whoever watches it: a terminal, lines on a pipe, or nobody.

The watcher is that of the whole process, as tables are at work in several threads. Without one, nothing is kept and
nothing is printed: callers in Python see no progress.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of an operation on a table: the `number`th of `of`, None where that is not known. `so_far`: the seconds
    of the operation before it, `expected`: those of all its stages."""

    table: str
    operation: str
    name: str
    number: int | None = None
    of: int | None = None
    so_far: float = 0.0
    expected: float | None = None
    began: float = field(default_factory=time.monotonic)


class Watcher(Protocol):
    """Gets the stages of a process. It is called from any thread, and returns at once."""

    def began(self, stage: Stage) -> None:
        """A stage begins."""

    def counted(self, stage: Stage, done: int, total: int) -> None:
        """So many tasks of the stage are done."""

    def ended(self, stage: Stage) -> None:
        """A stage has ended, well or not."""

    def noted(self, text: str) -> None:
        """Something that concerns no single table, or its end."""


_watchers: list[Watcher] = []
_here = threading.local()
"""`stage`: the one that this thread is in."""


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """In the `with` block, the watcher gets all stages of this process. Of several watchers, the last one gets them."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def in_stage(stage: Stage) -> Iterator[None]:
    """In the `with` block, this thread is in the stage."""
    before, _here.stage = _stage_here(), stage
    watcher = _watchers[-1] if _watchers else None
    if watcher is not None:
        watcher.began(stage)
    try:
        yield
    finally:
        _here.stage = before
        if watcher is not None:
            watcher.ended(stage)


def task_counter(total: int) -> Callable[[int], None] | None:
    """A function that reports how many tasks are done of the stage that this thread is in. Any thread may call it.
    None without a watcher."""
    stage = _stage_here()
    if not _watchers or stage is None:
        return None
    watcher = _watchers[-1]
    return lambda done: watcher.counted(stage, done, total)


def _stage_here() -> Stage | None:
    stage: Stage | None = getattr(_here, "stage", None)
    return stage


def note(text: str) -> None:
    """Send a line to the watcher, if there is one."""
    if _watchers:
        _watchers[-1].noted(text)
