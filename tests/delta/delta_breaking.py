"""Optimizing that breaks or waits on the way. Apart from its tests, so that a process of its own starts at once."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.delta.caring import optimize
from tests.faults import FaultyStorage, Fuse, Moment, Point, kill

from nightkeep import care
from nightkeep.formats.delta import format as delta_format


@contextmanager
def breaking(fuse: Fuse) -> Iterator[None]:
    """Tables that are opened here write through `fuse`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_format, "open_storage", lambda location: FaultyStorage(location, fuse))
        yield


def optimize_and_die(pipe: Connection, table: Path, run_id: str, at: int) -> None:
    """For a process of its own: it is killed at the `at`-th point; where it is not, it ends with status 1."""
    with breaking(Fuse(at, kill)):
        optimize(table, run_id=run_id)
    os._exit(1)


def optimize_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    """For a process of its own: says the stage's name before it begins, waits for a word, sends the document.

    Stages are those that `care` calls, and `link` for the moment before the commit becomes visible.
    """
    with pytest.MonkeyPatch.context() as patch:
        if stage == "link":
            fuse = _PausingFuse(pipe)
            patch.setattr(delta_format, "open_storage", lambda location: FaultyStorage(location, fuse))
        else:
            patch.setattr(care, stage, _pausing(pipe, stage, getattr(care, stage)))
        pipe.send(optimize(table, run_id=run_id, **settings).to_json())


def _pausing(pipe: Connection, stage: str, work: Callable[..., object]) -> Callable[..., object]:
    def paused(*arguments: object, **named: object) -> object:
        pipe.send(stage)
        pipe.recv()
        return work(*arguments, **named)

    return paused


class _PausingFuse(Fuse):
    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe: Connection | None = pipe

    def pass_on(self, point: Point) -> None:
        if self._pipe is not None and (point.moment, point.step) == (Moment.BEFORE, "link"):
            pipe, self._pipe = self._pipe, None
            pipe.send("link")
            pipe.recv()
