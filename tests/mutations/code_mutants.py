"""Mutants of the rooms `rewrite` and `commit` -> those that the fast tests let live. `make mutants` prints them.

Each mutant is a fork of this process in which the code of one function is another. Its own module's tests come first;
the first test that fails kills it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import os
import signal
import sys
import time
from collections import Counter
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import Any

import pytest
from tests.mutations.code_changes import Mutant, mutants, mutated

JOBS = Path("jobs")
ROOMS = ("rewrite", "commit")
FAST = {
    "delta": ("rewrite/test_optimize.py", "rewrite/test_persist.py", "rewrite/test_delete.py", "commit"),
    "iceberg": ("rewrite", "commit"),
    "paimon": (
        "rewrite/test_upgrade.py", "rewrite/test_rewrite.py", "rewrite/test_compact.py", "rewrite/test_levels.py",
        "rewrite/append", "gate/test_changes.py", "commit",
    ),
}  # fmt: skip
"""Tests without a JVM in which the gate judges what the rooms write, by format."""
REACHED: list[bool] = []
"""Of the process of one mutant: whether its function was called."""
_CALLED = "__import__('sys').modules['tests.mutations.code_mutants'].REACHED.append(True)"
_OPTIONS = ("-x", "-q", "-n", "0", "--quick", "-p", "no:cacheprovider", "-W", "ignore")


class End(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "not reached"
    NOT_MADE = "not made"


def found(name: str) -> list[Mutant]:
    places = [JOBS / "nightkeep/formats" / name / room for room in ROOMS]
    return [mutant for place in places for file in sorted(place.rglob("*.py")) for mutant in mutants(file)]


def tests_of(mutant: Mutant) -> list[str]:
    """Those of its module, then the fast ones of its format."""
    _, _, _, name, *place, module = mutant.file.parts
    folder = Path("tests/formats", name)
    own = folder.joinpath(*place, f"test_{module}")
    return [str(path) for path in (own, *(folder / each for each in FAST[name])) if path.exists()]


def outcome(mutant: Mutant, seconds: int) -> End:
    child = os.fork()
    if child == 0:
        os._exit(_lived(mutant, seconds))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return End.TIMED_OUT if os.WTERMSIG(status) == signal.SIGALRM else End.KILLED
    return list(End)[os.WEXITSTATUS(status)]


def _lived(mutant: Mutant, seconds: int) -> int:
    signal.alarm(seconds)
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    try:
        _change(mutant)
    except Exception:  # noqa: BLE001 -- a decorator that hides its function, a class that is made by a call
        return list(End).index(End.NOT_MADE)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        failed = pytest.main([*_OPTIONS, *tests_of(mutant)])
    end = End.KILLED if failed else End.SURVIVED if REACHED else End.UNREACHED
    return list(End).index(end)


def _change(mutant: Mutant) -> None:
    """Everybody who has the function has its new code."""
    name = ".".join(mutant.file.relative_to(JOBS).with_suffix("").parts)
    module = importlib.import_module(name)
    code: CodeType = compile(mutated(mutant, _CALLED), str(mutant.file), "exec")
    target: Any = module
    for part in mutant.function.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part)
        target = inspect.getattr_static(target, part)
    target = getattr(target, "__func__", getattr(target, "fget", target))
    function = inspect.unwrap(target)
    assert isinstance(function, FunctionType)
    function.__code__ = code.replace(co_freevars=function.__code__.co_freevars)


def _load(formats: list[str]) -> None:
    """Import what the tests import, once for all."""
    fast = [str(Path("tests/formats", name, each)) for name in formats for each in FAST[name]]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", *_OPTIONS, *fast])


def _sample(every: list[list[Mutant]], count: int, random: Random) -> list[Mutant]:
    """As many of each format, in turn."""
    shares = [random.sample(some, min(count // len(every), len(some))) for some in every]
    return [mutant for turn in zip_longest(*shares) for mutant in turn if mutant is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seconds", type=int, default=300, help="for the tests of one mutant")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("formats", nargs="*", default=list(FAST))
    asked = parser.parse_args()
    every = {name: found(name) for name in asked.formats}
    chosen = _sample(list(every.values()), asked.count, Random(asked.seed))
    count = sum(map(len, every.values()))
    print(f"{len(chosen)} of {count} mutants, seed {asked.seed}, at most {asked.minutes:g} minutes", flush=True)
    _load(asked.formats)
    until, ends = time.monotonic() + 60 * asked.minutes, Counter[End]()
    for mutant in chosen:
        if time.monotonic() > until:
            print("no time is left")
            break
        end = outcome(mutant, asked.seconds)
        ends[end] += 1
        if end is not End.KILLED:
            print(f"{end}: {mutant}", flush=True)
    print(", ".join(f"{count} {end}" for end, count in ends.items()))


if __name__ == "__main__":
    # The functions that REACHED belongs to are those of the imported module.
    sys.modules["tests.mutations.code_mutants"] = sys.modules["__main__"]
    main()
