"""A night in one process: what is found is ordered, worked on, checked and shown, and an ended night goes on."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.commands import said

import nightkeep
from nightkeep.api import night as nights
from nightkeep.errors import Interrupted, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Outcome
from nightkeep.records import CheckStatus, load_document, load_history

SAMPLES = Path(__file__).parents[2] / "samples"
IDLE = """\
version: 1
discover:
  - {{delta: "{0}/lake", name: "lake.{{table}}"}}
patterns:
  - match: "lake.*"
    where: "day < '1900-01-01'"
tables:
  - {{name: shop.gone, table: "paimon:{0}/gone"}}
"""
BUSY = """\
version: 1
budget: {{time: 1h}}
discover:
  - {{delta: "{0}/lake", name: "lake.{{table}}"}}
patterns:
  - match: "lake.*"
    sweep: {{mode: quarantine, older_than: 30d}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SAMPLES / "delta/shop.db/clicks", tmp_path / "lake/clicks")
    monkeypatch.setenv("NIGHTKEEP_POLICY", str(tmp_path / "tables.yaml"))
    return tmp_path


def write_policy(folder: Path, text: str) -> None:
    (folder / "tables.yaml").write_text(text.format(folder), encoding="utf-8")


def version(folder: Path) -> int:
    return open_table(Address("delta", str(folder / "lake/clicks"), "lake.clicks")).snapshot().version


@pytest.mark.slow
def test_each_table_of_the_policy_has_an_outcome_and_the_worst_is_the_exit_status(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_policy(folder, IDLE)
    shown = said(capsys, "night", "--json", "--run-id", "night-1")
    tables = {each["table"]: each["outcome"] for each in shown.json["tables"]}
    assert tables == {"shop.gone": "failed", "lake.clicks": "unchanged"}
    assert shown.status == 1 and shown.json["outcome"] == "failed"
    assert (shown.json["run_id"], Path(shown.json["page"]).name) == ("night-1", "night-1.html")
    page = Path(shown.json["page"]).read_text()
    assert "shop.gone" in page and "lake.clicks" in page
    assert "shop.gone" in (folder / "reports/pages/index.html").read_text()
    stored = {each.table for each in load_history(folder / "reports")}
    assert stored == {"shop.gone", "lake.clicks"}
    for each in shown.json["tables"]:
        assert {load_document(address).table for address in each["documents"]} == {each["table"]}


@pytest.mark.slow
def test_a_night_that_goes_on_has_the_tables_it_began_with(folder: Path) -> None:
    write_policy(folder, IDLE)
    nightkeep.night(run_id="night-1")
    shutil.copytree(folder / "lake/clicks", folder / "lake/later")
    assert [each.table for each in nightkeep.night(run_id="night-1").tables] == ["shop.gone", "lake.clicks"]
    assert len(nightkeep.night(run_id="night-2").tables) == 3


def test_an_interrupted_night_names_the_run_id_of_the_whole_night(folder: Path) -> None:
    write_policy(folder, IDLE)

    def stopped(*_: object) -> None:
        stop = Interrupted(2)
        stop.run_id = "night-1:lake.clicks"
        raise stop

    with patch.object(nights, "run_tables", stopped), pytest.raises(Interrupted) as ended:
        nightkeep.night(run_id="night-1")
    assert ended.value.run_id == "night-1"


@pytest.mark.slow
def test_a_night_without_a_run_id_gets_one(folder: Path) -> None:
    write_policy(folder, IDLE)
    assert nightkeep.night(run_id="").run_id.startswith("night-2")


@pytest.mark.parametrize("run_id", ["Night", "a/b", "-a", "x" * 101])
def test_a_run_id_is_part_of_file_names(folder: Path, run_id: str) -> None:
    write_policy(folder, IDLE)
    with pytest.raises(UsageError, match=r"^--run-id: expected at most 100 small letters.* found '"):
        nightkeep.night(run_id=run_id)


@pytest.mark.parametrize("run_id", ["index", "fleet"])
def test_a_run_id_is_not_the_name_of_another_page(folder: Path, run_id: str) -> None:
    write_policy(folder, IDLE)
    with pytest.raises(UsageError, match=f"expected a name for the page of a run, found '{run_id}'"):
        nightkeep.night(run_id=run_id)
    assert not (folder / "reports").exists()


def test_a_policy_that_cannot_be_understood_is_a_usage_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tables.yaml").write_text("version: 1\nnothing: here\n")
    shown = said(capsys, "night")
    assert shown.status == 2 and "nothing" in shown.err and not (folder / "reports").exists()


@pytest.mark.parametrize(
    "more", [["lake.clicks"], ["--delete"], ["--older-than", "3d"], ["--no-check"], ["--max-share", "0.5"]]
)
def test_a_sweep_of_all_takes_no_option_of_one_table(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    write_policy(folder, IDLE)
    shown = said(capsys, "sweep", "--all", *more)
    assert shown.status == 2 and "--all: expected nothing but what the policy states" in shown.err
    assert said(capsys, "sweep").err.endswith(
        "TABLE: expected the name or address of a table, or --all, found neither\n"
    )


@pytest.mark.slow
def test_a_night_publishes_checks_and_repeats_nothing_and_a_sweep_of_all_acts_by_the_policy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_policy(folder, BUSY)
    before = version(folder)
    run = nightkeep.night(run_id="night-1")
    assert run.outcome is Outcome.VERIFIED and version(folder) > before
    optimized = [each for each in run.documents if each.committed_version is not None]
    assert optimized and all(each.expectations.status is CheckStatus.PASSED for each in optimized)
    assert all(each.extra["night"] for each in run.documents)
    published = version(folder)
    again = nightkeep.night(run_id="night-1")
    assert again.outcome is Outcome.VERIFIED and version(folder) == published
    assert nightkeep.night().outcome is Outcome.UNCHANGED and version(folder) == published
    orphan = folder / "lake/clicks/part-left.parquet"
    orphan.write_bytes(b"PAR1")

    os.utime(orphan, (1_600_000_000, 1_600_000_000))
    shown = said(capsys, "sweep", "--all", "--json")
    assert shown.status == 0, shown.err
    swept = [load_document(address) for each in shown.json["tables"] for address in each["documents"]]
    assert {each.operation for each in swept} == {Operation.SWEEP} and not orphan.exists()
    assert json.loads(json.dumps(swept[0].to_json()))["orphans_total"] >= 1
