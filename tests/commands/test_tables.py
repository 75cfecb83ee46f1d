"""nightkeep tables and validate, and commands for tables that a policy does not list: over the samples."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.discovery.warehouses import DELTA, DISCOVER, ICEBERG, PAIMON, SAMPLES, place_samples, policy
from tests.support.commands import said

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import last_run

PATTERNS = """\
patterns:
  - {match: "lake.*", operations: [optimize]}
  - {match: "nothing.*", full: true}
tables:
  - {name: shop.orders, table: paimon:warehouse/paimon/shop.db/orders}
  - {name: broken, table: 'delta:${NK_UNSET}/t'}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place_samples(tmp_path, monkeypatch)
    policy(tmp_path, DISCOVER + "  - {delta: gone}\n" + PATTERNS)
    monkeypatch.setenv("NIGHTKEEP_POLICY", str(tmp_path / "tables.yaml"))
    monkeypatch.setenv("NIGHTKEEP_REPORTS", str(tmp_path / "reports"))
    return tmp_path


@pytest.mark.slow
def test_every_table_is_reported_with_what_covers_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "run", "lake.accounts", "--no-check").status == 0
    told = said(capsys, "tables", "--json")
    assert told.status == 0 and told.json == nightkeep.tables().to_json()
    rows = {row["name"]: row for row in told.json}
    names = [f"shop.{name}" for name in PAIMON] + [f"lake.{name}" for name in DELTA]
    assert rows.keys() == {*names, *(f"stream.{name}" for name in ICEBERG), "broken", "discover delta:gone"}
    assert {name for name, row in rows.items() if row["covered"]} == {"shop.orders", *(n for n in names if "lake" in n)}
    file = folder / "tables.yaml"
    assert rows["lake.accounts"] == {
        "name": "lake.accounts",
        "table": f"delta:{folder}/warehouse/delta/shop.db/accounts",
        "format": "delta",
        "found_in": "discover delta:warehouse/delta/shop.db",
        "covered": True,
        "covered_by": [f"{file}:8  pattern lake.*"],
        "last_outcome": "unchanged",
        "refused": None,
    }
    assert rows["shop.orders"]["found_in"] == f"{file}:11"
    assert rows["shop.orders"]["covered_by"] == [f"{file}:11  table shop.orders"]
    assert rows["stream.orders"]["table"] == "iceberg:lake/shop.orders" and not rows["stream.orders"]["covered_by"]
    assert "NK_UNSET" in rows["broken"]["refused"] and "cannot be listed" in rows["discover delta:gone"]["refused"]
    text = said(capsys, "tables").out.split("\n")
    assert text[0].split() == ["table", "covered", "by", "last", "outcome", "found", "in", "address"]
    assert any(
        line.startswith("lake.accounts        pattern lake.*     unchanged     discover delta:") for line in text
    )
    assert text[-2] == "17 tables, 13 of them only looked at, 2 refused"


def test_commands_know_discovered_tables_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = said(capsys, "plan", "lake.clicks", "--json")
    assert planned.status == 0 and planned.json["plan"]["units"]
    # A plan may be made of a table that nothing covers; a run does nothing.
    planned = said(capsys, "plan", "stream.orders", "--operation", "optimize", "--json")
    assert planned.status == 0 and planned.json["plan"]["units"]
    assert any("would be skipped now: discovered, and no pattern" in note for note in planned.json["plan"]["notes"])
    for command in (["run", "stream.orders", "--operation", "optimize"], ["sweep", "shop.stock", "--delete"]):
        done = said(capsys, *command, "--json")
        assert done.json["outcome"] == "skipped" and "no pattern or entry covers it" in done.json["reason"]
    explained = said(capsys, "explain", "lake.clicks").out
    assert f"{folder}/tables.yaml:8  pattern lake.*" in explained
    unknown = said(capsys, "plan", "lake.click")
    assert unknown.status == 2 and "did you mean lake.clicks?" in unknown.err


def test_history_and_release_look_for_no_table_that_has_documents(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "run", "lake.accounts", "--no-check").status == 0
    shutil.rmtree(folder / "warehouse")
    assert [each["table"] for each in said(capsys, "history", "lake.accounts", "--json").json] == ["lake.accounts"]
    assert said(capsys, "release", "lake.accounts").out == "lake.accounts: no hold\n"
    unknown = said(capsys, "history", "lake.clicks")
    assert (
        unknown.status == 2 and "lake.clicks: expected a name of" in unknown.err and "cannot be listed" in unknown.err
    )


def test_history_keeps_its_thread_when_a_table_is_renamed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ran(name: str) -> None:
        assert said(capsys, "run", name, "--no-check", "--run-id", f"as-{name}").status == 0

    ran("lake.accounts")
    warehouse = folder / "warehouse/delta/shop.db"
    (warehouse / "accounts").rename(warehouse / "members")
    # Another table takes the old name.
    shutil.copytree(SAMPLES / "delta/shop.db/accounts", warehouse / "other")
    for commit in (warehouse / "other/_delta_log").glob("*.json"):
        commit.write_text(re.sub(r'("metaData":\{"id":")[^"]*', r"\1another", commit.read_text()))
    ran("lake.members")
    ran("lake.other")
    past = [(each["table"], each["run_id"]) for each in said(capsys, "history", "lake.members", "--json").json]
    assert past == [("lake.accounts", "as-lake.accounts"), ("lake.members", "as-lake.members")]
    (warehouse / "other").rename(warehouse / "accounts")
    assert said(capsys, "run", "lake.accounts", "--no-check", "--run-id", "again").status == 0
    past = [(each["table"], each["run_id"]) for each in said(capsys, "history", "lake.other", "--json").json]
    assert past == [("lake.other", "as-lake.other"), ("lake.accounts", "again")]
    assert len(said(capsys, "history", "lake.members", "--json").json) == 2


@pytest.mark.slow
def test_the_status_of_discovered_tables_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy(folder, "version: 1\ndiscover:\n  - {delta: warehouse/delta}\n  - {delta: gone}\n")
    told = {each["name"]: each for each in said(capsys, "status", "--json").json}
    assert told.keys() == {*(f"shop.{name}" for name in DELTA), "discover delta:gone"}
    assert told["shop.clicks"]["score"] > 0 and told["discover delta:gone"]["why"].startswith("refused: discover")


def test_a_policy_is_validated_with_what_matches_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "tables.yaml"
    told = said(capsys, "validate")
    assert told.status == 2
    lines = told.out.strip().split("\n")
    assert lines[0].startswith(f"{file}:12: tables[1].table: expected environment variable NK_UNSET to be set")
    assert lines[1].startswith("warning: discover delta:gone: cannot be listed")
    assert lines[2:] == [f"warning: {file}:9: pattern nothing.*: it matches no table that could be listed"]
    policy(folder, DISCOVER + "  - {delta: warehouse, depth: 1}\nimports: ['teams/*']\n")
    checked = nightkeep.validate()
    assert not checked.faults and checked.warnings == (
        f"{file}:7: imports[0]: no file matches teams/*",
        f"{file}:6: discover delta:warehouse: no table is there, or none is included",
    )
    assert said(capsys, "validate").status == 0


@pytest.mark.parametrize("text", ["version: 2\n", "version: 1\ntables: [", "version: 1\ndefaults: {fulll: 3}\n"])
def test_faults_of_the_whole_file_are_reported_alike(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(text)
    told = said(capsys, "validate", "--policy", str(file), "--json")
    assert told.status == 2 and told.json["faults"][0].startswith(f"{file}:") and not told.json["warnings"]


def test_a_missing_policy_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIGHTKEEP_POLICY", raising=False)
    told = said(capsys, "validate")
    assert told.status == 2 and "expected a policy file, found none at tables.yaml or dags/tables.yaml" in told.err
    for command in (("tables", "--json"), ("status",), ("status", "--json")):
        asked = said(capsys, *command)
        assert (asked.status, asked.out) == (2, "")
        assert "expected a policy file, found none at tables.yaml or dags/tables.yaml" in asked.err


@pytest.mark.slow
def test_a_status_of_nothing_but_refusals_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(
        "version: 1\ndiscover:\n- {delta: '/nowhere/at/all'}\ntables:\n- {name: a, table: 'delta:${UNSET_A}'}\n"
    )
    asked = said(capsys, "status", "--policy", str(file), "--json")
    assert asked.status == 3 and all(each["why"].startswith("refused: ") for each in asked.json)
    assert "status: expected tables that can be read, found 2 tables refused" in asked.err
    file.write_text(f"version: 1\ntables:\n- {{name: a, table: 'delta:{tmp_path}/gone'}}\n")
    asked = said(capsys, "status", "--policy", str(file))
    assert asked.status == 0 and "found 1 table failed" in asked.err


def test_the_address_of_a_path_is_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    delta, paimon = SAMPLES / "delta/shop.db/accounts", SAMPLES / "paimon/shop.db/orders"
    for text, meant in (
        (f"{delta}", f"delta:{delta}"),
        (f"{paimon}", f"paimon:{paimon}"),
        (f"delta:{paimon}", f"paimon:{paimon}"),
        (f"{SAMPLES}/iceberg/shop/orders", "iceberg:CATALOG/NAMESPACE.TABLE"),
    ):
        asked = said(capsys, "plan", text)
        assert asked.status in (1, 2) and f"did you mean {meant}?" in asked.err + asked.out, asked


def test_the_last_run_is_the_worst_of_its_operations(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "delta/shop.db/accounts", tmp_path / "t")
    reports, table = str(tmp_path / "reports"), f"delta:{tmp_path}/t"
    assert last_run(reports, table) is None
    for run_id in ("one", "two"):
        nightkeep.run(table, operation=["optimize", "persist-deletes"], run_id=run_id, reports=reports)
    last = last_run(reports, table)
    assert last is not None and (last.run_id, last.outcome) == ("two", Outcome.UNCHANGED)
    (tmp_path / "reports").joinpath("damaged.json").touch()
    newest = max((tmp_path / "reports").glob("*/*.json"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_text("{")
    assert last_run(reports, table) is not None
