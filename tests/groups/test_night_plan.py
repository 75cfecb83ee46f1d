"""Which tables a night takes within a budget, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.admission.past_metrics import BUDGET
from nightkeep.errors import UsageError
from nightkeep.estimates.run_costs import SESSION
from nightkeep.groups.night_plan import NightBudget, budgets_of, night_order
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.model import Outcome
from nightkeep.model.night import NightPlace
from nightkeep.nights.run_tables import places_of
from nightkeep.policy import load
from nightkeep.policy.setting_types import Budget
from nightkeep.running.inspection.table_status import TableStatus
from nightkeep.spark.engine import Engine

HOUR = NightBudget("the night", Budget(time="1h"))  # type: ignore[arg-type]


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
        ("b", 1, 3, True),
        ("a", 2, 3, False),
        ("c", 3, 3, True),
    ]
    assert places[1].reason == (
        "budget: place 2 of 3 by gain per cost, score 1.00; it would take 2,000 s of time, and 1,600 s are left of "
        "the night"
    )
    assert places[0].reason == "place 1 of 3 by gain per cost, score 5.00"


def test_every_limit_counts_and_those_of_patterns_too() -> None:
    tables = [status("lake.a", 3, 10, 600 << 20), status("lake.b", 2, 10, 600 << 20), status("shop.c", 1, 10, 1 << 20)]
    lake = NightBudget("pattern lake.*", Budget(bytes="1GB"), frozenset({"lake.a", "lake.b"}))  # type: ignore[arg-type]
    places = night_order(tables, [HOUR, lake])
    assert taken(places) == ["lake.a", "shop.c"]
    assert places[1].reason.endswith("600MB of bytes, and 424MB are left of pattern lake.*")
    tasks = NightBudget("the night", Budget(task_time="1m"))  # type: ignore[arg-type]
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


def test_the_start_of_a_session_is_shared_by_its_tables() -> None:
    text = "version: 1\nbudget: {time: 1h}\ndefaults: {tables_per_session: 16}"
    (night,) = budgets_of(load("t.yaml", text=text))
    assert night.start == SESSION / 16
    fits, not_quite = 3_600 - night.start, 3_600.0
    assert [night_order([status("a", 1.0, cost)], [night])[0].taken for cost in (fits, not_quite)] == [True, False]


def test_without_a_budget_everything_is_taken_in_order() -> None:
    tables = [status("a", 1.0, 1e9), status("b", 2.0, 1e9)]
    assert taken(night_order(tables, [])) == ["b", "a"]


def test_what_is_held_back_takes_no_place() -> None:
    held = TableStatus(
        name="held", table="", format="delta", why="", score=9.0, seconds=3_600, held_back="paused: move"
    )
    assert taken(night_order([held, status("a", 1.0)], [HOUR])) == ["a"]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1, 4_000)), min_size=1, max_size=8), st.integers(1, 9))
def test_no_table_with_work_waits_longer_than_is_stated(work: list[tuple[float, float]], longest: int) -> None:
    budget = NightBudget("the night", Budget(time="30m", longest_wait=longest))  # type: ignore[arg-type]
    waited = {f"t{n}": 0 for n in range(len(work))}
    for _ in range(3 * longest + len(work)):
        tables = [status(f"t{n}", gain, cost, waited=waited[f"t{n}"]) for n, (gain, cost) in enumerate(work)]
        places = night_order(tables, [budget])
        assert all(each.taken or each.reason.startswith(BUDGET) for each in places)
        for each in places:
            waited[each.table] = 0 if each.taken else waited[each.table] + 1
        assert max(waited.values()) <= longest


def test_a_file_of_places_is_read_back_and_anything_else_is_an_error(tmp_path: Path) -> None:
    places = night_order([status("a", 1.0, 9_000), status("b", 2.0)], [HOUR])
    file = tmp_path / "night.json"
    file.write_text(json.dumps([each.to_json() for each in places]), encoding="utf-8")
    assert places_of(file) == {each.table: each for each in places}
    assert places_of(None) == {}
    for damaged in ("[", "[3]", '[{"table": "a"}]', "{}x"):
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(UsageError, match="--night: expected a file with the places of tables"):
            places_of(file)


def test_a_table_that_is_left_out_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("memory",))
    table = MemoryEngine(str(tmp_path))
    table.append("2026-11-01", range(10))
    name, out = str(table.address), NightPlace("one", 2, 2, taken=False, reason="budget: place 2 of 2")
    night = TableGroup(
        load("t.yaml", text="version: 1"), (name,), "night", str(tmp_path / "reports"), night={name: out}
    )
    (done,) = run_group(night, (), Engine(master="local[1]", task_memory_bytes=1 << 30))
    assert (done.document.outcome, done.document.reason) == (Outcome.SKIPPED, out.reason)
    assert done.document.extra["night"] == out.to_json()


def test_a_table_that_is_left_out_is_not_opened_again(tmp_path: Path) -> None:
    out = NightPlace("gone", 2, 2, taken=False, reason="budget: place 2 of 2")
    policy = load("t.yaml", text=f"version: 1\ntables: [{{name: gone, table: 'paimon:{tmp_path}/gone'}}]")
    night = TableGroup(policy, ("gone",), "night", str(tmp_path / "reports"), night={"gone": out})
    (done,) = run_group(night, (), Engine(master="local[1]", task_memory_bytes=1 << 30))
    assert (done.document.outcome, done.document.reason) == (Outcome.SKIPPED, out.reason)
