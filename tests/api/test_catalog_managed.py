"""Catalog-managed Delta tables: refused before Spark starts, and named as refused where tables are listed."""

import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.formats.delta.hand_log import HandLog, add
from tests.support.commands import said

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.spark.engine import Engine

FEATURES = ["catalogManaged", "catalogOwned-preview"]
SAMPLE = Path(__file__).parents[2] / "samples/delta/shop.db/clicks"


@pytest.fixture(params=FEATURES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    log = HandLog(tmp_path / "lake" / "managed", features=("inCommitTimestamp", request.param))
    log.commit(0, {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 1}}, *log.head, add("a.parquet"))
    log.commit(1, {"commitInfo": {"timestamp": 2, "inCommitTimestamp": 2}}, add("b.parquet"))
    return f"delta:{log.folder}"


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("expected no Spark for a table that nobody here may read")

    monkeypatch.setattr(Engine, "spark", started)


@pytest.mark.usefixtures("no_spark")
def test_a_check_and_a_diff_are_refused_before_spark_starts(table: str, tmp_path: Path) -> None:
    for options in ({}, {"version": 1}, {"version": 1, "base": 0}):
        with pytest.raises(RefusedTable, match="table feature catalog"):
            nightkeep.check(table, reports=tmp_path / "reports", **options)  # type: ignore[call-overload]
    with pytest.raises(RefusedTable, match="table feature catalog"):
        nightkeep.diff(table, version=1, other=0, reports=tmp_path / "reports")


@pytest.mark.usefixtures("no_spark")
def test_the_commands_end_with_the_status_of_a_refusal(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("check", table), ("diff", table, "--version", "1", "--other", "0")):
        refused = said(capsys, *arguments)
        assert refused.status == 3 and "table feature catalog" in refused.err


@pytest.mark.slow
def test_a_list_of_tables_has_the_refusal_in_its_line(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "lake" / "clicks")
    (tmp_path / "lake" / "damaged" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "damaged" / "_delta_log" / f"{0:020d}.json").write_text("{")
    (tmp_path / "tables.yaml").write_text(
        "version: 1\ndiscover: [{delta: lake}]\npatterns: [{match: '*', full: true}]\n"
    )
    monkeypatch.chdir(tmp_path)
    rows = {row["name"]: row for row in said(capsys, "tables", "--json").json}
    assert "table feature catalog" in str(rows["managed"]["refused"]) and rows["managed"]["covered"]
    # What is wrong with a table the commands state that work on it.
    assert rows["clicks"]["refused"] is None and rows["damaged"]["refused"] is None
    text = said(capsys, "tables").out
    (line,) = [line for line in text.split("\n") if line.startswith("managed ")]
    assert line.split()[1] == "refused"
    assert "managed: refused: " in text and text.rstrip().endswith("2 tables, 0 of them only looked at, 1 refused")
