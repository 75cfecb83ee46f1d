"""Stages of tables at work -> lines on stderr: one a stage on a pipe, a moving one a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from nightkeep.progress import Stage, watching

_LEAST: Final = 0.05


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[None]:
    """In the `with` block, progress is printed on stderr, unless it is to be quiet."""
    console = Console(stderr=True)
    if quiet:
        yield
    elif console.is_terminal:
        with _bars(console) as bars, watching(_Terminal(bars)):
            yield
    else:
        with watching(_Lines(console)):
            yield


def _bars(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[expected]}", markup=False),
        console=console,
        transient=True,
    )


def line_of(stage: Stage) -> str:
    """`lake.clicks optimize: rewrite, stage 2 of 5; 0.4 s so far, about 12 s expected`"""
    place = "" if stage.number is None else f", stage {stage.number} of {stage.of}"
    so_far = f"{stage.so_far:,.1f} s so far" if stage.so_far >= _LEAST else ""
    expected = "" if stage.expected is None else f"about {stage.expected:,.0f} s expected"
    known = ", ".join(filter(None, (so_far, expected)))
    return f"{stage.table} {stage.operation}: {stage.name}{place}" + (f"; {known}" if known else "")


class _Lines:
    """A line for each stage of each operation, when it begins for the first time."""

    def __init__(self, console: Console) -> None:
        self._console, self._lock = console, Lock()
        self._seen = set[tuple[str, str, str]]()

    def began(self, stage: Stage) -> None:
        named = (stage.table, stage.operation, stage.name)
        with self._lock:
            is_new = named not in self._seen
            self._seen.add(named)
        if is_new:
            self._print(line_of(stage))

    def counted(self, stage: Stage, done: int, total: int) -> None:
        """A pipe has a line for a stage, and no more."""

    def ended(self, stage: Stage) -> None:
        """The next stage has the seconds."""

    def noted(self, text: str) -> None:
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Terminal:
    """A line for each stage that is at work, with a bar where the number of its tasks is known."""

    def __init__(self, bars: Progress) -> None:
        self._bars, self._lock = bars, Lock()
        self._tasks: dict[Stage, TaskID] = {}

    def began(self, stage: Stage) -> None:
        expected = "" if stage.expected is None else f"of about {stage.expected:,.0f} s"
        place = "" if stage.number is None else f" {stage.number} of {stage.of}"
        text = f"{stage.table} {stage.operation}: {stage.name}{place}"
        task = self._bars.add_task(text, total=None, expected=expected)
        with self._lock:
            # The stage around it waits.
            for outer, shown in self._tasks.items():
                if (outer.table, outer.operation) == (stage.table, stage.operation):
                    self._bars.update(shown, visible=False)
            self._tasks[stage] = task

    def counted(self, stage: Stage, done: int, total: int) -> None:
        with self._lock:
            task = self._tasks.get(stage)
        if task is not None:
            self._bars.update(task, completed=done, total=total)

    def ended(self, stage: Stage) -> None:
        with self._lock:
            task = self._tasks.pop(stage, None)
        if task is not None:
            self._bars.remove_task(task)

    def noted(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False)
