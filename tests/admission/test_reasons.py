"""Why a table is left alone now, and in which order the reasons are asked for."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import pytest
from tests.formats.delta.runs import policy

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.admission.owner_settings import OwnerSettings
from nightkeep.admission.reasons import REASONS, Act, Case, Opened, case_of, reason_to_skip, reason_to_stay_closed
from nightkeep.model import Operation, Outcome
from nightkeep.model.night import NightPlace
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument, hold, release

NOON, NIGHT = (datetime(2026, 11, 1, hour, tzinfo=UTC) for hour in (12, 23))


LIFTED = ("paused", "uncovered", "on_hold", "owner")
"""Reasons that a person can lift."""
PAIRS = """
paused    uncovered | paused    paused    paused    | paused
paused    on_hold   | paused    paused    paused    | paused
paused    owner     | paused    owner     paused    | paused
paused    window    | paused    paused    paused    | paused
paused    budget    | paused    -         -         | paused
paused    when      | paused    paused    -         | paused
paused    too_long  | paused    paused    -         | paused
uncovered on_hold   | uncovered uncovered uncovered | uncovered
uncovered owner     | uncovered owner     uncovered | uncovered
uncovered window    | uncovered uncovered uncovered | uncovered
uncovered budget    | uncovered -         -         | uncovered
uncovered when      | uncovered uncovered -         | uncovered
uncovered too_long  | uncovered uncovered -         | uncovered
on_hold   owner     | on_hold   owner     on_hold   | on_hold
on_hold   window    | on_hold   on_hold   on_hold   | on_hold
on_hold   budget    | on_hold   -         -         | on_hold
on_hold   when      | on_hold   on_hold   -         | on_hold
on_hold   too_long  | on_hold   on_hold   -         | on_hold
owner     window    | window    owner     window    | owner
owner     budget    | budget    -         -         | owner
owner     when      | owner     owner     -         | owner
owner     too_long  | owner     owner     -         | owner
window    budget    | window    -         -         | window
window    when      | window    window    -         | window
budget    when      | budget    -         -         | budget
budget    too_long  | budget    -         -         | budget
when      too_long  | when      when      -         | when
"""
"""Two reasons | which of them a run's plan, a status and a removal gave before one order was stated | which is given.
`-`: the place did not ask for both. A window that is closed and work that is too long for it exclude each other."""
ROWS = [[part.split() for part in line.split("|")] for line in PAIRS.strip().splitlines()]


def case_with(*names: str, folder: Path) -> Case:
    """An opened case in which these reasons hold and no other."""
    hours = "22:00-06:00 UTC" if "window" in names else "11:00-13:00 UTC"
    settings: dict[str, object] = {"window": hours, "when": "files > 3"}
    chosen = policy(folder / "t", **(settings | ({"pause": "a"} if "paused" in names else {})))
    if "uncovered" in names:
        chosen = replace(chosen, uncovered=True)
    if "on_hold" in names:
        hold(str(folder / "reports"), chosen.address.name, document(chosen))
    opened = Opened(
        OwnerSettings(pause="b" if "owner" in names else None),
        {"files": 3 if "when" in names else 4},
        7_200 if "too_long" in names else 60,
    )
    night = NightPlace("t", 1, 1, taken=False, reason="budget: c") if "budget" in names else None
    case = case_of(chosen, Order(Operation.OPTIMIZE, "r", str(folder / "reports"), night=night), NOON)
    return replace(case, opened=opened)


def name_of(reason: Callable[[Case], str | None]) -> str:
    return getattr(reason, "__name__", "")


@pytest.fixture
def table(tmp_path: Path) -> EffectivePolicy:
    return policy(tmp_path / "a table")


def document(table: EffectivePolicy) -> RunDocument:
    return RunDocument(
        run_id="run/1",
        table=table.address.name,
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH,
        reason="rows differ",
        address=str(table.address),
        started_at=NOON,
        finished_at=NOON,
    )


def why(policy: EffectivePolicy, operation: Operation, reports: str, now: datetime) -> str | None:
    order = Order(operation, "r", reports, removal=RemovalOptions(mode=SweepMode.DELETE))
    return reason_to_skip(case_of(policy, order, now))


def test_the_order_is_stated() -> None:
    names = ("paused", "uncovered", "on_hold", "owner", "window", "budget", "when", "too_long")
    assert tuple(map(name_of, REASONS)) == names and names[: len(LIFTED)] == LIFTED
    pairs = [tuple(pair) for pair, _, _ in ROWS]
    assert pairs == [pair for pair in combinations(names, 2) if pair != ("window", "too_long")]


@pytest.mark.parametrize(("pair", "before", "now"), ROWS, ids=lambda part: "-".join(part))
def test_of_two_reasons_the_first_is_given(pair: list[str], before: list[str], now: list[str], tmp_path: Path) -> None:
    case = case_with(*pair, folder=tmp_path)
    holding = {name_of(reason): found for reason in REASONS if (found := reason(case)) is not None}
    assert list(holding) == pair
    assert reason_to_skip(case) == holding[now[0]] == holding[pair[0]]
    # Where the places agreed, their answer stays; where they differed, it is a reason that a person can lift.
    given = set(before) - {"-"}
    assert given == set(now) or now[0] in LIFTED


@pytest.mark.parametrize("names", [(), ("owner", "when", "too_long")])
def test_before_the_table_is_opened_three_reasons_have_no_answer(names: tuple[str, ...], tmp_path: Path) -> None:
    case = case_with(*names, folder=tmp_path)
    assert (reason_to_skip(case) is None) is (names == ())
    assert reason_to_skip(replace(case, opened=None)) is None


def test_acts_that_change_nothing_are_stopped_by_fewer_reasons(tmp_path: Path) -> None:
    for n, reason in enumerate(REASONS):
        name = name_of(reason)
        case = case_with(name, folder=tmp_path / name)
        stopped = {act for act in Act if reason_to_skip(replace(case, act=act)) is not None}
        looks = {
            "paused": {Act.PLAN, Act.LIST, Act.AUDIT},
            "uncovered": {Act.LIST, Act.AUDIT},
            "owner": {Act.LIST},
            "window": {Act.AUDIT},
            "budget": {Act.AUDIT},
        }
        assert stopped == {Act.WORK, *looks.get(name, ())}, name
        assert (reason_to_stay_closed(case) is not None) is (n < 2), name
    closed = OwnerSettings(window=policy(tmp_path / "t", window="22:00-06:00 UTC").window(Operation.OPTIMIZE))
    case = replace(case_with(folder=tmp_path), opened=Opened(closed))
    assert str(reason_to_skip(case)).startswith("outside its owner's window ")
    assert reason_to_skip(replace(case, act=Act.LIST)) is None


def test_a_table_without_hold_and_window_is_not_left(table: EffectivePolicy, tmp_path: Path) -> None:
    assert why(table, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON) is None


def test_a_hold_states_whose_it_is_and_how_it_is_released(table: EffectivePolicy, tmp_path: Path) -> None:
    reports = str(tmp_path / "reports")
    hold(reports, table.address.name, document(table))
    said = why(table, Operation.OPTIMIZE, reports, NOON)
    assert said is not None and said.startswith(
        "on hold since run run/1: rows differ; to release it: nightkeep release "
    )
    assert said.endswith(f"'{table.address.name}'")
    release(reports, table.address.name)
    assert why(table, Operation.OPTIMIZE, reports, NOON) is None


def test_a_hold_that_cannot_be_read_holds(table: EffectivePolicy, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    hold(str(reports), table.address.name, document(table))
    (marker,) = (path for path in reports.rglob("*") if path.is_file())
    marker.write_text("{")
    assert str(why(table, Operation.OPTIMIZE, str(reports), NOON)).startswith("on hold, why cannot be read: ")


def test_outside_its_window_a_table_is_left(table: EffectivePolicy, tmp_path: Path) -> None:
    nightly = policy(tmp_path / "a table", window="22:00-06:00 UTC")
    assert why(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NIGHT) is None
    assert str(why(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON)).startswith("outside its window ")
    hold(str(tmp_path / "reports"), nightly.address.name, replace(document(nightly)))
    assert str(why(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON)).startswith("on hold since ")


def test_an_operation_may_have_a_window_of_its_own(tmp_path: Path) -> None:
    mine, reports = policy(tmp_path / "a table", window={"sweep": "22:00-06:00 UTC"}), str(tmp_path / "reports")
    assert why(mine, Operation.OPTIMIZE, reports, NOON) is None
    assert why(mine, Operation.SWEEP, reports, NOON) == "outside its window 22:00-06:00 UTC"
    assert why(mine, Operation.SWEEP, reports, NIGHT) is None
