"""`make test` and `make test-extended` share the suite: each test belongs to one of them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.extended import Case, extended_among, some_extended

ROOT = Path(__file__).parents[2]
A, B, C = "a", "b", "c"


def cases(function: str, names: Sequence[str], versions: Sequence[int] = (2, 3), *, file: str = "f") -> list[Case]:
    turns = frozenset({"version"})
    return [Case(file, function, {"name": name, "version": v}, turns) for name in names for v in versions]


def kept(every: Sequence[Case]) -> list[tuple[object, ...]]:
    extended = extended_among(every)
    return [(case.function, *case.parameters.values()) for n, case in enumerate(every) if n not in extended]


def test_values_of_a_marked_parameter_come_in_turn_over_the_others() -> None:
    assert kept(cases("f", (A, B, C))) == [("f", A, 2), ("f", B, 3), ("f", C, 2)]


def test_functions_of_a_file_begin_with_different_values_and_files_do_not() -> None:
    every = [*cases("f", (A,)), *cases("g", (A,)), *cases("h", (A,), file="other")]
    assert kept(every) == [("f", A, 2), ("g", A, 3), ("h", A, 2)]


def test_a_combination_that_has_one_value_keeps_it() -> None:
    assert kept([*cases("f", (A, B)), *cases("f", (C,), versions=(2,))])[-1] == ("f", C, 2)


def test_cases_of_a_function_need_not_stand_together() -> None:
    """pytest runs all tests of one value of a module's fixture before those of the next."""
    every = sorted([*cases("f", (A, B)), *cases("g", (A,))], key=lambda case: str(case.parameters["version"]))
    assert sorted(kept(every)) == [("f", A, 2), ("f", B, 3), ("g", A, 3)]


def test_what_is_marked_as_a_whole_takes_no_turn() -> None:
    marked = [Case("f", "f", case.parameters, case.in_turn, extended=True) for case in cases("f", (A,))]
    assert kept([*marked, *cases("g", (A,))]) == [("g", A, 2)]


def test_values_that_are_kept_are_spread_over_all_of_them() -> None:
    marked = some_extended([0, (1, 1), pytest.param(2, id="two"), 3, 4], keep=2)
    assert [n for n, value in enumerate(marked) if not hasattr(value, "marks")] == [0]
    assert [(value.values, value.id) for value in marked[1:2] + marked[3:]] == [
        ((1, 1), None),
        ((3,), None),
        ((4,), None),
    ]
    assert not marked[2].marks


def test_few_cases_of_a_function_are_those_that_turns_left() -> None:
    every = [replace(case, few=2) for case in cases("f", (A, B, C, "d"))]
    assert kept(every) == [("f", A, 2), ("f", C, 2)]
    assert kept([replace(case, few=9) for case in cases("f", (A,))]) == [("f", A, 2)]
    assert kept([replace(case, few=1, in_turn=frozenset()) for case in cases("g", (A, B))]) == [("g", A, 2)]


@pytest.mark.extended
@pytest.mark.slow
def test_each_test_belongs_to_one_of_both() -> None:
    file = "tests/engines/iceberg/test_onwards.py"
    every, basic, extended = (
        collected(file, *option) for option in ((), ("--without-extended",), ("--only-extended",))
    )
    assert basic and extended
    assert sorted([*basic, *extended]) == sorted(every)


def collected(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]
