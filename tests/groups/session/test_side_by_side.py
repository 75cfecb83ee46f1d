"""Several tables at work at once: results in the order of the tables, nobody waits for another, and time is shared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.groups.session.side_by_side import SharedTime, side_by_side

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


def test_what_is_at_work_is_reported() -> None:
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


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_table_alone_has_all_of_the_time() -> None:
    clock = Clock()
    with SharedTime(clock).at_work() as share:
        assert share() == 1.0
        clock.now += 5
        assert share() == 1.0


def test_two_tables_have_half_of_the_time_in_which_both_are_at_work() -> None:
    clock = Clock()
    time = SharedTime(clock)
    with time.at_work() as long:
        clock.now += 2
        with time.at_work() as short:
            clock.now += 4
            assert (long() * 6, short() * 4) == (2 + 2, 2)
        clock.now += 4
        assert long() * 10 == pytest.approx(8)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=6))
def test_the_shares_of_all_tables_add_up_to_the_time_in_which_any_was_at_work(spans: list[tuple[int, int]]) -> None:
    clock = Clock()
    time, start = SharedTime(clock), clock.now
    open_now, total = dict[int, tuple[AbstractContextManager[Callable[[], float]], Callable[[], float]]](), 0.0
    moments = sorted({moment for begin, length in spans for moment in (begin, begin + length)})
    for moment in moments:
        clock.now = start + moment
        for number, (begin, length) in enumerate(spans):
            if begin + length == moment:
                context, share = open_now.pop(number)
                total += share() * length
                context.__exit__(None, None, None)
        for number, (begin, _) in enumerate(spans):
            if begin == moment:
                context = time.at_work()
                open_now[number] = (context, context.__enter__())
    busy = sum(
        later - earlier
        for earlier, later in pairwise(moments)
        if any(begin <= earlier and later <= begin + length for begin, length in spans)
    )
    assert total == pytest.approx(busy)
