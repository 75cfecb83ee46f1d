"""Which tests `make test` leaves to `make test-extended`, which is run before a change is merged; CI runs `make test`.

A mark `in_turn("version")` says that `make test` shows a behaviour once for each combination of the other parameters,
with the values of `version` in turn; the combinations that are left are extended. A mark `few(2)` says that two of the
cases that are left stay, evenly spread. A mark `extended` is of a whole test, such as a long history, or of some of its
parameters. `make test` tries a fifth of the examples of a property, and `make test-extended` all of them. Without an
option pytest runs everything.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.mark import ParameterSet


@dataclass(frozen=True, slots=True)
class Case:
    """One test: the file and the function it is of, its parameters, the names of those that come in turn, and how many
    cases of the function `make test` takes; 0 are all."""

    file: str
    function: str
    parameters: Mapping[str, object]
    in_turn: frozenset[str] = frozenset()
    extended: bool = False
    few: int = 0


def some_extended(values: Iterable[Any], *, keep: int) -> list[Any]:
    """The same values, of which `make test` takes `keep`, evenly spread; the others are marked.

    A value is of one parameter; a tuple is of several.
    """
    every = list(values)
    kept = _spread(len(every), keep)
    return [value if n in kept else _marked(value) for n, value in enumerate(every)]


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--without-extended", action="store_true", help="the tests of make test")
    parser.addoption("--only-extended", action="store_true", help="the tests that make test leaves out")


def deselect_extended(config: pytest.Config, items: list[pytest.Item]) -> None:
    without, only = config.getoption("without_extended"), config.getoption("only_extended")
    if without and only:
        raise pytest.UsageError("expected one of --without-extended and --only-extended, found both")
    if without or only:
        extended = extended_among([_case(item) for item in items])
        chosen = [item for n, item in enumerate(items) if (n in extended) is only or (only and _is_property(item))]
        taken = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in taken])
        items[:] = chosen


def extended_among(cases: Sequence[Case]) -> set[int]:
    """Places of the extended cases. Each combination of parameters that take no turns keeps one case; of those, few."""
    extended = _left_by_turns(cases)
    limited = [n for n, case in enumerate(cases) if case.few and n not in extended]
    for function in _grouped(limited, lambda n: (cases[n].file, cases[n].function)):
        kept = _spread(len(function), cases[function[0]].few)
        extended.update(place for n, place in enumerate(function) if n not in kept)
    return extended


def _left_by_turns(cases: Sequence[Case]) -> set[int]:
    extended = {n for n, case in enumerate(cases) if case.extended}
    taking_turns = [n for n, case in enumerate(cases) if case.in_turn and not case.extended]
    for file in _grouped(taking_turns, lambda n: cases[n].file):
        for turn, function in enumerate(_grouped(file, lambda n: cases[n].function)):
            # Functions of one file begin with different values.
            for place, alike in enumerate(_grouped(function, lambda n: _others(cases[n])), start=turn):
                extended.update(set(alike) - {alike[place % len(alike)]})
    return extended


def _spread(count: int, keep: int) -> set[int]:
    """Places of `keep` of `count` values, evenly spread; of all where there are no more."""
    return {n * count // keep for n in range(keep)} if keep < count else set(range(count))


def _marked(value: Any) -> Any:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.extended], id=value.id)
    several = value if isinstance(value, tuple) else (value,)
    return pytest.param(*several, marks=pytest.mark.extended)


def _others(case: Case) -> tuple[tuple[str, int], ...]:
    """Parameters are the same when they are the same object: functions and fixtures' values have no other equality."""
    return tuple((name, id(value)) for name, value in sorted(case.parameters.items()) if name not in case.in_turn)


def _grouped(places: Sequence[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """In the order of the first of each group; what belongs together need not stand together."""
    groups: dict[Hashable, list[int]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return list(groups.values())


def _is_property(item: pytest.Item) -> bool:
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def _case(item: pytest.Item) -> Case:
    file, _, function = item.nodeid.partition("::")
    called = getattr(item, "callspec", None)
    few = item.get_closest_marker("few")
    return Case(
        file=file,
        function=function.partition("[")[0],
        parameters={} if called is None else called.params,
        in_turn=frozenset(name for mark in item.iter_markers("in_turn") for name in mark.args),
        extended=item.get_closest_marker("extended") is not None,
        few=0 if few is None else few.args[0],
    )
