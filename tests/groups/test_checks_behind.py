"""Checks in threads behind the work: results in the order of the work, and no more left than a few."""

from __future__ import annotations

from threading import Event

from nightkeep.groups.checks_behind import MOST, WAITING, ChecksBehind


def test_results_come_in_the_order_of_the_work() -> None:
    first = Event()

    def slow() -> str:
        assert first.wait(60)
        return "a"

    with ChecksBehind[str]() as checks:
        checks.add("a", slow)
        checks.add("b", lambda: "b")
        checks.put("c", ["c1", "c2"])
        assert list(checks.finished()) == []
        first.set()
        assert list(checks.rest()) == ["a", "b", "c1", "c2"]


def test_the_next_work_on_a_table_waits_for_its_check() -> None:
    with ChecksBehind[str]() as checks:
        checks.add("a", lambda: "a")
        checks.add("b", lambda: "b1")
        checks.put("b", ["b2"])
        checks.put("c", ["c"])
        assert list(checks.until("b")) == ["a", "b1", "b2"]
        assert list(checks.until("b")) == []
        assert list(checks.rest()) == ["c"]


def test_work_waits_where_many_checks_are_left() -> None:
    started, go = [Event() for _ in range(WAITING + 1)], Event()

    def check(number: int) -> int:
        started[number].set()
        assert go.wait(60)
        return number

    with ChecksBehind[int]() as checks:
        for number in range(WAITING):
            checks.add(str(number), lambda number=number: check(number))  # type: ignore[misc]
        assert all(event.wait(60) for event in started[:MOST]), "as many at once as are allowed"
        assert not any(event.is_set() for event in started[MOST:])
        assert list(checks.finished()) == []
        checks.add("more", lambda: check(WAITING))
        go.set()
        assert next(checks.finished()) == 0
        assert list(checks.rest()) == [*range(1, WAITING + 1)]


def test_leaving_early_waits_for_checks_and_begins_no_other() -> None:
    done: list[int] = []
    with ChecksBehind[None]() as checks:
        for number in range(20):
            checks.add("a", lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == sorted(done) and set(done) <= set(range(20))
