"""A night with a budget: the worst tables first, what does not fit left out, and found again by its retries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples.working_copy import copy_tables

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.nights.orders import order_night
from nightkeep.policy import load
from nightkeep.records import load_history, night_path

POLICY = """\
version: 1
budget: {{bytes: 100KB}}
patterns:
  - match: "lake.*"
    budget: {{time: 1h}}
tables:
  - {{name: shop.fine, table: "paimon:{0}/paimon/shop.db/ledger"}}
  - {{name: lake.clicks, table: "delta:{0}/delta/shop.db/clicks"}}
  - {{name: lake.readings, table: "delta:{0}/delta/shop.db/readings"}}
  - {{name: shop.gone, table: "paimon:{0}/paimon/shop.db/gone"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy_tables(tmp_path / "warehouse")
    (tmp_path / "tables.yaml").write_text(POLICY.format(tmp_path / "warehouse"), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_what_a_budget_does_not_hold_is_left_out_and_waits(folder: Path) -> None:
    reports = str(folder / "reports")
    ordered = order_night(load(folder / "tables.yaml"), reports, "night-1")
    assert [each.name for each in ordered.tables] == ["lake.clicks", "lake.readings", "shop.fine", "shop.gone"]
    places = json.loads(Path(night_path(reports, "night-1")).read_text())
    assert [(each["table"], each["place"], each["taken"]) for each in places] == [
        ("lake.clicks", 1, False),
        ("lake.readings", 2, False),
    ]
    arguments = [
        "--policy",
        str(folder / "tables.yaml"),
        "--reports",
        reports,
        "--run-id-prefix",
        "night-1",
        "--night",
        night_path(reports, "night-1"),
        "--tables",
        "lake.clicks,shop.fine",
    ]
    assert run_job(arguments, operations=()) == 0
    (clicks,) = load_history(reports, "lake.clicks")
    assert str(clicks.reason).startswith("budget: place 1 of 2 by gain per cost, score ")
    assert clicks.committed_version is None and clicks.extra["night"] == places[0]
    (fine,) = load_history(reports, "shop.fine")
    assert (fine.outcome.value, "night" in fine.extra) == ("unchanged", False)
    found = nightkeep.status(policy=folder / "tables.yaml", reports=reports)
    told = {each.name: each for each in found}
    assert told["lake.clicks"].metrics["nights_waited"] == 1
    night = told["lake.clicks"].night
    assert night is not None and not night.taken and "left out for 1 night;" in night.reason
    assert told["shop.fine"].night is None and told["shop.fine"].to_json()["night"] is None
    assert "; budget: place 1 of 2" in str(found)


def test_without_a_budget_no_table_is_opened(folder: Path) -> None:
    policy = load(folder / "tables.yaml", text="version: 1\ntables: [{name: a, table: 'delta:/nowhere'}]")
    assert order_night(policy, str(folder / "reports"), "night-1") is policy
    assert not (folder / "reports").exists()
