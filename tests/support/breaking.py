"""Care that breaks or waits on the way, for any format. Apart from tests, so that a process starts at once."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.support.faulty_store import FaultyStorage, Fuse, Moment, Point, kill
from tests.support.processes import Child, child

from nightkeep.running.rewrites import run_operation

Work = Callable[..., Any]
"""Cares for a table: (table, *, run_id, **settings) -> its document."""


@contextmanager
def breaking(format_module: ModuleType, fuse: Fuse) -> Iterator[None]:
    """Tables of the format that are opened here write through `fuse`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(format_module, "open_storage", lambda location: FaultyStorage(location, fuse))
        yield


def die(work: Work, format_module: ModuleType, table: Path, run_id: str, *, at: int) -> None:
    """For a process of its own: it is killed at the `at`-th point; where it is not, it ends with status 1."""
    with breaking(format_module, Fuse(at, kill)):
        work(table, run_id=run_id)
    os._exit(1)


def pause(pipe: Connection, work: Callable[[], Any], format_module: ModuleType, stage: str) -> None:
    """For a process of its own: says the stage's name before it begins, waits for a word, sends the document.

    Stages are those that `care` calls, `commit` for the moment before the last look at what a commit is built on, and
    `link` for the moment before it becomes visible.
    """
    with pytest.MonkeyPatch.context() as patch:
        if stage in _STEPS:
            fuse = _PausingFuse(pipe, stage)
            patch.setattr(format_module, "open_storage", lambda location: FaultyStorage(location, fuse))
        else:
            patch.setattr(run_operation, stage, _pausing(pipe, stage, getattr(run_operation, stage)))
        pipe.send(work().to_json())


class Ours:
    """A run in a process of its own, waiting before a stage."""

    def __init__(self, process: Child) -> None:
        self._process = process

    def release(self) -> None:
        self._process.say("go")

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = self._process.hear()
        return found

    def go_on(self) -> dict[str, Any]:
        self.release()
        return self.document()


@contextmanager
def paused(
    target: Callable[..., None], table: Path, run_id: str, before: str, settings: dict[str, object]
) -> Iterator[Ours]:
    """`target`, run in a process of its own, once it waits before the stage."""
    with child(target, table, run_id, before, settings) as process:
        assert process.hear() == before
        yield Ours(process)


def _pausing(pipe: Connection, stage: str, work: Callable[..., object]) -> Callable[..., object]:
    def paused(*arguments: object, **named: object) -> object:
        pipe.send(stage)
        pipe.recv()
        return work(*arguments, **named)

    return paused


_STEPS: Mapping[str, Callable[[Point], bool]] = {
    "commit": lambda point: (point.moment, point.step) == (Moment.BEFORE, "create") and point.name.endswith(".tmp"),
    "link": lambda point: (point.moment, point.step) == (Moment.BEFORE, "link"),
}


class _PausingFuse(Fuse):
    def __init__(self, pipe: Connection, stage: str) -> None:
        super().__init__()
        self._pipe: Connection | None = pipe
        self._stage = stage

    def pass_on(self, point: Point) -> None:
        if self._pipe is not None and _STEPS[self._stage](point):
            pipe, self._pipe = self._pipe, None
            pipe.send(self._stage)
            pipe.recv()
