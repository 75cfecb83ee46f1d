"""Mutants of the rooms `rewrite` and `commit` -> those that the fast tests let live. `make mutants` prints them.

The fast tests run once, to see which lines each reaches. Then each mutant is a fork of this process in which one
function is another, and the tests that reach the changed statement run until one fails: those of its module first.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import pickle
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import accumulate, zip_longest
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import Any, TextIO, TypeVar

import pytest
from tests.mutations.code_changes import Mutant, mutants, mutated
from tests.mutations.reach import Reach, ReachedLines

JOBS, TESTS = Path("jobs"), Path("tests")
FORMATS, ROOMS = ("delta", "iceberg", "paimon"), ("rewrite", "commit")
FOLDERS = ("commit", "deletes", "gate", "rewrite")
"""Rooms of a format whose tests judge, or are the mutant's own."""
JUDGES = ("faults", "formats/test_contract.py", "stages")
"""Tests of several formats in which a gate judges, or a table is read, besides those of a format."""
ESTIMATES = frozenset({"health.py", "lag.py", "merged_size.py", "writer_clock.py"})
"""Modules that count for people and for plans. What is written does not depend on them."""
Told = TypeVar("Told")
_OPTIONS = ("-q", "-n", "0", "--quick", "-s", "-p", "no:cacheprovider", "-p", "no:timeout", "-W", "ignore")


class End(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "not reached"
    NOT_MADE = "not made"


def found(name: str, rooms: Sequence[str]) -> list[Mutant]:
    places = [JOBS / "nightkeep/formats" / name / room for room in rooms]
    files = [file for place in places for file in sorted(place.rglob("*.py")) if file.name not in ESTIMATES]
    return [mutant for file in files for mutant in mutants(file)]


class Mutating:
    """A plugin of pytest that runs mutants in the place of tests."""

    def __init__(self, chosen: Sequence[Mutant], minutes: float, seconds: float, out: TextIO) -> None:
        self._chosen, self._seconds, self._out = chosen, seconds, out
        self._until = time.monotonic() + 60 * minutes
        self._lines = ReachedLines(sorted({mutant.file for mutant in chosen}))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.config.pluginmanager.register(self._lines)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        status, reach = _in_child(lambda: self._lines.run(session), self._out)
        if status or reach is None:
            raise pytest.UsageError("the tests could not be run")
        session.config.pluginmanager.unregister(self._lines)
        for place in sorted(reach.failed):
            self._say(f"fails without any change: {session.items[place].nodeid}")
        self._say(f"{len(session.items)} tests of {sum(reach.seconds):.0f} CPU seconds")
        ends = Counter[End]()
        for mutant in self._chosen:
            if time.monotonic() > self._until:
                self._say("no time is left")
                break
            end = self._outcome(session, mutant, reach)
            ends[end] += 1
            if end is not End.KILLED:
                self._say(f"{end}: {mutant}")
        self._say(", ".join(f"{count} {end}" for end, count in ends.items()))
        return True

    def _outcome(self, session: pytest.Session, mutant: Mutant, reach: Reach) -> End:
        places = reach.of(mutant.file, mutant.lines)
        if not places:
            return End.UNREACHED
        places = _picked([(session.items[place].path, place) for place in places], reach, mutant, self._seconds)
        tests = [session.items[place] for place in places]
        limit = 20 + 5 * sum(reach.seconds[place] for place in places)
        status, end = _in_child(lambda: _end(session, mutant, tests, limit), self._out)
        if os.WIFSIGNALED(status):
            return End.TIMED_OUT if os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM) else End.KILLED
        return End.KILLED if end is None else end

    def _say(self, text: str) -> None:
        print(text, file=self._out, flush=True)


def _in_child(work: Callable[[], Told], out: TextIO) -> tuple[int, Told | None]:
    """How a fork of this process ended, and what `work` returned in it; None if it returned nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = pickle.dumps(work())
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(told)
        except BaseException:  # noqa: BLE001 -- nothing of this process may go on in the child
            traceback.print_exc(file=out)
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return status, pickle.loads(text) if text else None


def _picked(tests: Sequence[tuple[Path, int]], reach: Reach, mutant: Mutant, seconds: float) -> list[int]:
    """Tests of about so many seconds: of the mutant's module, then of each file in turn, the quickest first."""
    files = defaultdict(list)
    for path, place in tests:
        files[path].append(place)
    own = [place for path, places in files.items() if path.name == f"test_{mutant.file.name}" for place in places]
    turns = [place for turn in zip_longest(*files.values()) for place in turn if place is not None]
    order = list(dict.fromkeys([*own, *turns]))
    spent = accumulate(reach.seconds[place] for place in order)
    return [place for place, until in zip(order, spent, strict=True) if until < seconds or place == order[0]]


def _end(session: pytest.Session, mutant: Mutant, tests: Sequence[pytest.Item], limit: float) -> End:
    # Of CPU, as a loop without end takes, and ten times as much of waiting.
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_REAL, 10 * limit)
    try:
        _change(mutant)
    except Exception:  # noqa: BLE001 -- a decorator that hides its function, a class that is made by a call
        return End.NOT_MADE
    for test, following in zip_longest(tests, tests[1:]):
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.testsfailed:
            return End.KILLED
    return End.SURVIVED


def _change(mutant: Mutant) -> None:
    """Everybody who has the function has its new code."""
    name = ".".join(mutant.file.relative_to(JOBS).with_suffix("").parts)
    module = importlib.import_module(name)
    code: CodeType = compile(mutated(mutant), str(mutant.file), "exec")
    target: Any = module
    for part in mutant.function.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part)
        target = inspect.getattr_static(target, part)
    target = getattr(target, "__func__", getattr(target, "fget", target))
    function = inspect.unwrap(target)
    assert isinstance(function, FunctionType)
    function.__code__ = code.replace(co_freevars=function.__code__.co_freevars)


def _sample(every: list[list[Mutant]], count: int, random: Random) -> list[Mutant]:
    """As many of each format, in turn."""
    shares = [random.sample(some, min(count // len(every), len(some))) for some in every]
    return [mutant for turn in zip_longest(*shares) for mutant in turn if mutant is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seconds", type=float, default=15, help="of CPU, of the tests of a mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="+", default=ROOMS)
    parser.add_argument("--only", default="", help="a part of what is printed of a mutant, such as commit.py:45:")
    parser.add_argument("formats", nargs="*", default=FORMATS)
    asked = parser.parse_args()
    every = [[mutant for mutant in found(name, asked.rooms) if asked.only in f"{mutant}"] for name in asked.formats]
    chosen = _sample(every, asked.count, Random(asked.seed))
    # Tests and what they report write to the standard streams.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    print(f"{len(chosen)} of {sum(map(len, every))} mutants, seed {asked.seed}", file=out, flush=True)
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    tests = [TESTS / "formats" / name / room for name in asked.formats for room in FOLDERS]
    ended = pytest.main(
        [*_OPTIONS, *map(str, tests), *(str(TESTS / each) for each in JUDGES)],
        plugins=[Mutating(chosen, asked.minutes, asked.seconds, out)],
    )
    sys.exit(0 if ended in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else int(ended))


if __name__ == "__main__":
    main()
