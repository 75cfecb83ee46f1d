"""Stages of tables at work -> lines on stderr: one a stage on a pipe, a moving one a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from nightkeep.progress import Stage, watching

_LEAST: Final = 0.05
_PATIENCE: Final = 1.0
"""Seconds for which a first stage goes unsaid."""


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
    """A line for each stage of each operation, when it begins for the first time.

    The line of a first stage waits until more is to be said, or a second long: what is refused at once, or needs
    nothing, is a sentence and no progress.
    """

    def __init__(self, console: Console) -> None:
        self._console, self._lock = console, Lock()
        self._seen = set[tuple[str, str, str]]()
        self._waiting: dict[tuple[str, str], tuple[Stage, Timer]] = {}

    def began(self, stage: Stage) -> None:
        named, key = (stage.table, stage.operation, stage.name), (stage.table, stage.operation)
        with self._lock:
            is_new = named not in self._seen
            self._seen.add(named)
            if is_new and stage.number == 1:
                timer = Timer(_PATIENCE, self._print_waiting, [key])
                timer.daemon = True
                self._waiting[key] = (stage, timer)
                timer.start()
                return
        self._print_waiting(key)
        if is_new:
            self._print(line_of(stage))

    def counted(self, stage: Stage, done: int, total: int) -> None:
        """A pipe has a line for a stage, and no more."""

    def ended(self, stage: Stage) -> None:
        """The next stage has the seconds. A line that still waits comes before that of the next stage, if there is
        one."""
        with self._lock:
            waiting = self._waiting.get((stage.table, stage.operation))
        if waiting is not None and waiting[0] == stage:
            waiting[1].cancel()

    def noted(self, text: str) -> None:
        for key in [*self._waiting]:
            self._print_waiting(key)
        self._print(text)

    def _print_waiting(self, key: tuple[str, str]) -> None:
        with self._lock:
            waiting = self._waiting.pop(key, None)
        if waiting is not None:
            waiting[1].cancel()
            self._print(line_of(waiting[0]))

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
