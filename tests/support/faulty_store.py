"""A local store that breaks at one point of its writes. A clean run over it says how many points there are.

Each step of LocalStorage that changes the folder passes a fuse before and after it, and a new file once more with
half of its bytes in place; so does the link that makes a commit visible.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from threading import RLock
from typing import BinaryIO, NoReturn

from nightkeep.storage import LocalStorage

_ONE_AT_A_TIME = RLock()
"""A file may become durable while the next one is created."""


class Moment(Enum):
    BEFORE = "before"
    HALFWAY = "halfway through"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Point:
    """One place where a write can break: `step` is create, link, rename or delete."""

    moment: Moment
    step: str
    name: str

    def __str__(self) -> str:
        kind = PurePosixPath(self.name).name.split("-nk-")[0]
        return f"{self.moment.value} {self.step} {kind}"


@dataclass
class Fuse:
    """Notes every point it is passed and burns at the `at`-th, counted from 1; never without `at`."""

    at: int | None = None
    burn: Callable[[Point], None] = lambda point: None
    passed: list[Point] = field(default_factory=list)

    def pass_on(self, point: Point) -> None:
        with _ONE_AT_A_TIME:
            self.passed.append(point)
            if len(self.passed) == self.at:
                self.burn(point)

    @property
    def burns_next(self) -> bool:
        return len(self.passed) + 1 == self.at


TURNS = 5
"""Not a multiple of the moments of a step, which follow one another: each turn has points of every moment."""


def places(count: int, turn: int) -> range:
    """Of the points 1 to `count` those that one of the turns breaks. All turns together break every point."""
    return range(1 + turn, count + 1, TURNS)


def fail(point: Point) -> NoReturn:
    raise OSError(f"injected {point}")


def kill(point: Point) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class FaultyStorage(LocalStorage):
    """LocalStorage whose steps pass `fuse`; what it does between them is LocalStorage's own code."""

    fuse: Fuse

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        self.fuse.pass_on(Point(Moment.BEFORE, "create", name))
        with LocalStorage.create(self, name) as sink:
            yield sink
            with _ONE_AT_A_TIME:
                if self.fuse.burns_next:
                    sink.truncate(sink.tell() // 2)
                self.fuse.pass_on(Point(Moment.HALFWAY, "create", name))
        self.fuse.pass_on(Point(Moment.AFTER, "create", name))

    def removed(self, folder: int, last: str, name: str) -> None:
        with self._around("delete", name):
            LocalStorage.removed(self, folder, last, name)

    def _linked(self, source: int, target: int, name: str, other: str) -> None:
        with self._around("link", other):
            LocalStorage._linked(self, source, target, name, other)

    def _rename(self, name: str, other: str) -> None:
        with self._around("rename", other):
            LocalStorage._rename(self, name, other)

    @contextmanager
    def _around(self, step: str, name: str) -> Iterator[None]:
        self.fuse.pass_on(Point(Moment.BEFORE, step, name))
        yield
        self.fuse.pass_on(Point(Moment.AFTER, step, name))
