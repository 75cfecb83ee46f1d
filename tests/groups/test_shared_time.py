"""Tables that are at work at once share the time of their session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.groups.shared_time import SharedTime


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
