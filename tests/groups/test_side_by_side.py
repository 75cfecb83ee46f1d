"""Several tables at work at once: results in the order of the tables, and nobody waits for another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from threading import Event

import pytest

from nightkeep.groups.side_by_side import side_by_side

TABLES = ("a", "b", "c", "d")


def run(
    work: Callable[[str, str], Sequence[str]],
    *,
    slots: int = 2,
    at_work: Callable[[Sequence[str]], None] = lambda _: None,
    first: Callable[[str], float] = lambda _: math.inf,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[str]:
    names = [f"slot {n}" for n in range(slots)]
    return side_by_side(TABLES, work, names, first=first, at_work=at_work, goes_on=goes_on)


def test_results_come_in_the_order_of_the_tables() -> None:
    second = Event()

    def work(table: str, slot: str) -> list[str]:
        if table == "a":
            assert second.wait(60), "the table after it is at work meanwhile"
        elif table == "b":
            second.set()
        return [f"{table}1", f"{table}2"]

    assert [*run(work)] == ["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"]


def test_a_slot_has_one_table_at_a_time_and_all_are_used() -> None:
    used = dict[str, str]()
    both = Event()

    def work(table: str, slot: str) -> list[str]:
        assert slot not in used
        used[slot] = table
        if len(used) == 2:
            both.set()
        assert both.wait(60)
        del used[slot]
        return [slot]

    assert {*run(work)} == {"slot 0", "slot 1"}


def test_the_largest_begins_first() -> None:
    begun = list[str]()

    def work(table: str, slot: str) -> list[str]:
        begun.append(table)
        return [table]

    sizes = {"a": 1.0, "b": 9.0, "c": math.inf, "d": 9.0}
    assert [*run(work, slots=1, first=sizes.__getitem__)] == [*TABLES]
    assert begun == ["c", "b", "d", "a"]


def test_what_is_at_work_is_told() -> None:
    told = list[tuple[str, ...]]()
    assert [*run(lambda table, slot: [table], slots=1, at_work=lambda now: told.append(tuple(now)))] == [*TABLES]
    assert told == [("a",), (), ("b",), (), ("c",), (), ("d",), ()]


def test_no_table_begins_after_the_end_of_its_session() -> None:
    begun = list[str]()

    def work(table: str, slot: str) -> list[str]:
        begun.append(table)
        return [table]

    assert [*run(work, slots=1, goes_on=lambda: len(begun) < 2)] == ["a", "b"]
    assert begun == ["a", "b"]


def test_an_interrupt_ends_it_and_begins_no_other_table() -> None:
    begun = list[str]()

    def work(table: str, slot: str) -> list[str]:
        begun.append(table)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        [*run(work, slots=1)]
    assert begun == ["a"]


def test_leaving_early_begins_no_other_table() -> None:
    begun = list[str]()

    def work(table: str, slot: str) -> list[str]:
        begun.append(table)
        return [table]

    results = run(work, slots=1)
    assert next(results) == "a"
    results.close()  # type: ignore[attr-defined]
    assert begun == ["a"]
