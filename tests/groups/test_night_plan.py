"""Which tables a night takes within a budget, and in which order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nightkeep.groups.night_plan import NightBudget, NightPlace, night_order
from nightkeep.policy.settings import Budget
from nightkeep.running.past_metrics import BUDGET
from nightkeep.running.table_status import TableStatus

HOUR = NightBudget(None, Budget(time="1h"))  # type: ignore[arg-type]


def status(name: str, score: float | None, seconds: float = 60, size: int = 0, waited: int = 0) -> TableStatus:
    metrics = {"nights_waited": waited}
    return TableStatus(
        name=name, table="", format="delta", why="", score=score, seconds=seconds, moved_bytes=size, metrics=metrics
    )


def taken(places: tuple[NightPlace, ...]) -> list[str]:
    return [each.table for each in places if each.taken]


def test_the_worst_come_first_until_the_budget_is_used() -> None:
    tables = [status("a", 1.0, 2_000), status("b", 5.0, 2_000), status("c", 0.5, 1_000), status("fine", None)]
    places = night_order(tables, [HOUR])
    assert [(each.table, each.place, each.of, each.taken) for each in places] == [
        ("b", 1, 3, True), ("a", 2, 3, False), ("c", 3, 3, True),
    ]  # fmt: skip
    assert places[1].reason == (
        "budget: place 2 of 3 by gain per cost, score 1.00; it would take 2,000 s of time, and 1,600 s are left of "
        "the night"
    )
    assert places[0].reason == "place 1 of 3 by gain per cost, score 5.00"


def test_every_limit_counts_and_those_of_patterns_too() -> None:
    tables = [status("lake.a", 3, 10, 600 << 20), status("lake.b", 2, 10, 600 << 20), status("shop.c", 1, 10, 1 << 20)]
    lake = NightBudget("lake.*", Budget(bytes="1GB"))  # type: ignore[arg-type]
    places = night_order(tables, [HOUR, lake])
    assert taken(places) == ["lake.a", "shop.c"]
    assert places[1].reason.endswith("600MB of bytes, and 424MB are left of pattern lake.*")
    tasks = NightBudget(None, Budget(task_time="1m"))  # type: ignore[arg-type]
    assert taken(night_order(tables, [tasks])) == ["lake.a", "shop.c"]


def test_a_table_that_was_left_out_comes_sooner_and_in_the_end_whatever_it_costs() -> None:
    small = [status(f"small{n}", 1.0, 1_000) for n in range(3)]
    assert taken(night_order([*small, status("late", 0.6, 1_000, waited=1)], [HOUR]))[0] == "late"
    huge = status("huge", 0.01, 10_000, waited=6)
    assert "huge" not in taken(night_order([*small, huge], [HOUR]))
    places = night_order([*small, status("huge", 0.01, 10_000, waited=7)], [HOUR])
    assert taken(places) == ["huge"]
    assert places[0].reason.endswith(
        "it would take 10,000 s of time, and 3,600 s are left of the night, but it has waited"
    )


def test_without_a_budget_everything_is_taken_in_order() -> None:
    tables = [status("a", 1.0, 1e9), status("b", 2.0, 1e9)]
    assert taken(night_order(tables, [])) == ["b", "a"]


def test_what_is_held_back_takes_no_place() -> None:
    held = TableStatus(
        name="held", table="", format="delta", why="", score=9.0, seconds=3_600, held_back="paused: move"
    )
    assert taken(night_order([held, status("a", 1.0)], [HOUR])) == ["a"]


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(1, 4_000)), min_size=1, max_size=8), st.integers(1, 9),
)  # fmt: skip
def test_no_table_with_work_waits_longer_than_is_stated(work: list[tuple[float, float]], longest: int) -> None:
    budget = NightBudget(None, Budget(time="30m", longest_wait=longest))  # type: ignore[arg-type]
    waited = {f"t{n}": 0 for n in range(len(work))}
    for _ in range(3 * longest + len(work)):
        tables = [status(f"t{n}", gain, cost, waited=waited[f"t{n}"]) for n, (gain, cost) in enumerate(work)]
        places = night_order(tables, [budget])
        assert all(each.taken or each.reason.startswith(BUDGET) for each in places)
        for each in places:
            waited[each.table] = 0 if each.taken else waited[each.table] + 1
        assert max(waited.values()) <= longest
