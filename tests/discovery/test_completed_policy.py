"""What was found, under a policy: who wins, who is covered, and what a night does with a table that was only found."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from pathlib import Path
from typing import cast

import pytest
from tests.discovery.warehouses import DELTA, ICEBERG, PAIMON, SAMPLES, delta_table, place_samples, policy
from tests.groups.session.test_run_group import Checking

from nightkeep.commands.job import run_job
from nightkeep.discovery import Found, completed, find_tables, keep_found, kept_found, knowing
from nightkeep.discovery.found import FoundTable, Unlistable
from nightkeep.errors import AddressError, CorruptMetadata, PolicyError
from nightkeep.groups.session.run_group import run_group, sweep_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.model import Operation, Outcome
from nightkeep.policy import PolicyFile, groups, load
from nightkeep.records import load_history
from nightkeep.spark.engine import Engine

WAREHOUSE = "version: 1\ndiscover:\n  - {delta: d}\n"


def whole(folder: Path, text: str = "", *tables: str) -> PolicyFile:
    for table in tables:
        delta_table(folder / table)
    loaded = policy(folder, WAREHOUSE + text)
    return completed(loaded, find_tables(loaded.discoveries))


def names(loaded: PolicyFile) -> tuple[list[str], list[str]]:
    return [each.name for each in loaded.tables], [each.name for each in loaded.unusable]


@pytest.mark.parametrize(
    ("text", "usable", "unusable"),
    [
        ("tables: [{name: other, table: delta:d/a}]", ["other", "b"], []),
        ("tables: [{name: other, table: 'delta:link/a'}]", ["other", "b"], []),
        ("tables: [{name: a, table: delta:/elsewhere}]", ["a", "b"], []),
        # Nobody knows what holds for a table whose own entry is wrong, by whatever name it is found.
        ("tables: [{name: other, table: delta:d/a, full: 3}]", ["b"], ["other"]),
        ("tables: [{name: a, table: 'delta:${NK_UNSET}'}]", ["b"], ["a"]),
        ("  - {delta: d, name: 'again.{name}'}", ["a", "b"], []),
        ("  - {delta: e, name: '{table}'}", ["b"], ["a"]),
        ("  - {delta: gone}", ["a", "b"], ["discover delta:gone"]),
        ("patterns: [{match: 'a*', full: 3}]", ["b"], ["a"]),
        ("patterns: [{match: '*', sweep: {older_than: 24h}}]", [], ["a", "b"]),
    ],
)
def test_an_entry_wins_and_a_fault_concerns_its_own_tables(
    tmp_path: Path, text: str, usable: list[str], unusable: list[str]
) -> None:
    delta_table(tmp_path / "e/deep/a")
    (tmp_path / "link").symlink_to(tmp_path / "d")
    assert names(whole(tmp_path, text, "d/a", "d/b")) == (usable, unusable)


def test_two_tables_of_one_name_are_reported_with_their_places(tmp_path: Path) -> None:
    delta_table(tmp_path / "e/a")
    loaded = whole(tmp_path, "  - {delta: e}", "d/a")
    with pytest.raises(PolicyError, match=rf"a: expected one table .* delta:{tmp_path}/d/a and delta:{tmp_path}/e/a"):
        loaded.effective("a")


def test_an_odd_name_is_no_name(tmp_path: Path) -> None:
    loaded = whole(tmp_path, "", "d/two\nlines", "d/delta:x", "d/fine")
    assert names(loaded)[0] == ["fine"] and len(loaded.unusable) == 2
    assert loaded.unusable[1].fault.endswith("expected a name of one line that is no address, found 'two\\nlines'")


def test_defaults_alone_cover_no_table_and_grant_nothing_that_deletes(tmp_path: Path) -> None:
    text = """\
defaults:
  operations: [optimize]
  sweep: {mode: delete, outside: true, max_share: 0.9}
  expire: {enabled: true, retain_last: 9}
patterns:
  - {match: "shop.*", full: true}
  - {match: "*.q", sweep: {mode: quarantine}, expire: {enabled: true}}
tables:
  - {name: own, table: delta:/own}
"""
    loaded = whole(tmp_path, text, "d/crm/a", "d/shop/b", "d/crm/q")
    found = {name: loaded.effective(name) for name in ("own", "crm.a", "shop.b", "crm.q")}
    assert {name: each.uncovered for name, each in found.items()} == {
        "own": False,
        "crm.a": True,
        "shop.b": False,
        "crm.q": False,
    }
    modes = {n: (e.settings.sweep.mode, e.settings.sweep.outside, e.settings.expire.enabled) for n, e in found.items()}
    assert modes == {
        "own": ("delete", True, True),
        "crm.a": ("dry-run", False, False),
        "shop.b": ("dry-run", False, False),
        "crm.q": ("quarantine", False, True),
    }
    # What is no grant holds all the same.
    covered = found["shop.b"]
    assert covered.settings.operations == ("optimize",) and covered.settings.expire.retain_last == 9
    assert covered.origins["sweep.mode"].layer == "built-in"
    assert pickle.loads(pickle.dumps(found["crm.a"])).uncovered


def test_a_team_covers_the_tables_that_it_discovers(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("discover: [{delta: e}]\npatterns: [{match: '*', full: true}]")
    delta_table(tmp_path / "e/theirs")
    loaded = whole(tmp_path, "imports: [team.yaml]", "d/ours")
    assert {each.name: loaded.of_table(each).uncovered for each in loaded.tables} == {"ours": True, "theirs": False}


def test_only_places_that_may_have_a_name_are_listed(tmp_path: Path) -> None:
    delta_table(tmp_path / "d/a")
    text = "  - {paimon: gone, name: 'shop.{table}'}\ntables: [{name: own, table: delta:/own}]"
    loaded = policy(tmp_path, WAREHOUSE.replace("d}", "d, name: 'lake.{name}'}") + text)
    assert knowing(loaded, ("own", "delta:/x")) is loaded
    assert names(knowing(loaded, ("lake.a",))) == (["own", "lake.a"], [])
    with pytest.raises(AddressError, match=r"shop\.b: expected a name of .*; discover paimon:gone: cannot be listed"):
        knowing(loaded, ("shop.b",)).effective("shop.b")


@pytest.mark.slow
def test_a_night_only_reports_a_table_that_nothing_covers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it opened: here its log is no log."""
    monkeypatch.setattr("nightkeep.groups.session.run_group.beside", lambda engine: engine)
    text = "  - {paimon: gone}\npatterns: [{match: covered, operations: [optimize]}]\n"
    loaded = whole(tmp_path, text, "d/covered", "d/found")
    tables = tuple(name for group in groups(loaded) for name in group)
    assert set(tables) == {"covered", "found", "discover paimon:gone"}
    group = TableGroup(loaded, tables, "night-1", str(tmp_path / "reports"))
    reasons: dict[str, tuple[Outcome, str]] = {}
    for work in (lambda: run_group(group, (), cast(Engine, Checking(tmp_path))), lambda: swept(group, tmp_path)):
        reasons = {each.document.table: (each.document.outcome, str(each.document.reason)) for each in work()}
        assert reasons["found"] == (Outcome.SKIPPED, "discovered, and no pattern or entry covers it")
        assert reasons["discover paimon:gone"][0] is Outcome.FAILED
        assert "discover paimon:gone: cannot be listed" in reasons["discover paimon:gone"][1]
        assert reasons["covered"][0] is Outcome.FAILED and "_delta_log" in reasons["covered"][1]


def swept(group: TableGroup, folder: Path) -> object:
    return sweep_group(group, cast(Engine, Checking(folder)))


@pytest.mark.slow
def test_a_job_takes_what_its_run_found_and_lists_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SAMPLES / "delta/shop.db/accounts", tmp_path / "d/accounts")
    loaded = policy(tmp_path, WAREHOUSE + "patterns: [{match: acc*, check: {enabled: false}}]\n")
    kept = keep_found(str(tmp_path / "reports"), "night-1", find_tables(loaded.discoveries))
    (tmp_path / "result.json").touch()
    arguments = [
        "--policy",
        str(tmp_path / "tables.yaml"),
        "--reports",
        str(tmp_path / "reports"),
        "--run-id-prefix",
        "night-1",
        "--tables",
        "accounts",
        "--result",
        str(tmp_path / "result.json"),
    ]

    def told() -> list[object]:
        assert run_job(arguments, operations=()) == 0
        return [entry["outcome"] for entry in json.loads((tmp_path / "result.json").read_text())]

    # Without the file the job looks for the table itself.
    assert told() == ["unchanged"]
    arguments += ["--found", kept]
    monkeypatch.delattr("nightkeep.formats.delta.listing.list_tables")
    assert told() == ["unchanged"]
    assert [document.table for document in load_history(tmp_path / "reports")] == ["accounts"]
    # A table that is gone leaves no error in the next night.
    shutil.rmtree(tmp_path / "d/accounts")
    monkeypatch.undo()
    assert not completed(loaded, find_tables(loaded.discoveries)).tables


def test_what_a_run_found_is_kept_for_its_jobs_and_not_for_ever(tmp_path: Path) -> None:
    found = Found(
        (FoundTable("a", "delta", "/d/a", "discover delta:d"),), (Unlistable("x", "paimon", "x", "x: cannot"),)
    )
    old = Path(keep_found(str(tmp_path), "old", Found()))
    os.utime(old, (time.time() - 40 * 86400,) * 2)
    assert kept_found(keep_found(str(tmp_path), "run:1", found)) == found
    assert not old.exists() and load_history(tmp_path) == ()
    for text in ("{}", "[]", '{"tables": [{}], "unlistable": []}', "nothing"):
        old.write_text(text)
        with pytest.raises(CorruptMetadata, match=r"old\.json"):
            kept_found(str(old))


def test_a_place_that_left_the_policy_since_the_run_began_has_no_tables(tmp_path: Path) -> None:
    found = Found((FoundTable("a", "delta", "/d/a", "discover delta:removed"),))
    assert not completed(policy(tmp_path, WAREHOUSE), found).tables


def test_the_nightly_policy_covers_every_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTKEEP_WAREHOUSE", str(place_samples(tmp_path, monkeypatch) / "warehouse"))
    loaded = load(SAMPLES.parent / "dags/tables.yaml")
    loaded = completed(loaded, find_tables(loaded.discoveries))
    expected = [f"shop.{name}" for name in PAIMON] + [f"lake.{name}" for name in DELTA]
    assert names(loaded) == ([*expected, *(f"stream.{name}" for name in ICEBERG)], [])
    chosen = {table.name: loaded.of_table(table) for table in loaded.tables}
    assert not any(each.uncovered for each in chosen.values())
    assert {each.settings.sweep.mode for each in chosen.values()} == {"quarantine"}
    assert chosen["shop.orders"].settings.operations is None
    assert chosen["shop.orders"].operations == (Operation.UPGRADE, Operation.OPTIMIZE)
    assert chosen["lake.clicks"].operations == (Operation.OPTIMIZE,)
    assert chosen["stream.orders"].operations == (Operation.PERSIST_DELETES, Operation.OPTIMIZE)
    clustering = chosen["lake.readings"].settings.clustering
    assert clustering is not None and clustering.columns == ("device_id", "ts")
    assert chosen["lake.readings"].operations == (Operation.OPTIMIZE,)
