"""The functions of `nightkeep` beside the commands of the same names, each on its own copy of one sample."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Said, said

import nightkeep
from nightkeep.api.results import Pages, Release, RunHistory, Runs
from nightkeep.errors import UsageError
from nightkeep.model import UnitKey
from nightkeep.records import CheckStatus, Unreadable, hold_or_note
from nightkeep.records.check_report import CheckReport, Difference, DiffReport, ExpectationResult, UnitDiff
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange

SAMPLE = Path(__file__).parents[2] / "samples" / "delta" / "shop.db" / "clicks"
NAMES = (
    "advise",
    "audit",
    "check",
    "delete",
    "diff",
    "doctor",
    "expire",
    "explain",
    "history",
    "metrics",
    "night",
    "plan",
    "read",
    "read_plan",
    "release",
    "report",
    "restore",
    "run",
    "sql",
    "status",
    "sweep",
    "tables",
    "update",
    "validate",
)
VARYING = {
    "run_id",
    "started_at",
    "finished_at",
    "seconds",
    "cutoff",
    "orphans_file",
    "peak_task_memory",
    "plan_digest",
}
NAMED = {"base_identity", "identity", "parent_identity", "share_of_rewrite", "cpu_seconds", "executors"}


def same(value: Any, place: Path) -> Any:
    """A document without what differs from one run to the next, and without its folder."""
    if isinstance(value, dict):
        return {key: same(held, place) for key, held in value.items() if key not in VARYING | NAMED}
    if isinstance(value, list):
        return [same(held, place) for held in value]
    return value.replace(str(place), "") if isinstance(value, str) else value


class Door:
    """Two copies of a table: one for the function, one for the command."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.ours, self.theirs, self._capture = folder / "ours", folder / "theirs", capture
        for place in (self.ours, self.theirs):
            shutil.copytree(SAMPLE, place / "clicks")
        self.table, self.reports = f"delta:{self.ours}/clicks", self.ours / "reports"

    def command(self, name: str, *arguments: str, has_reports: bool = True) -> Said:
        places = ["--reports", str(self.theirs / "reports")] if has_reports else []
        return said(self._capture, name, *arguments, *places)

    def agrees(self, document: Any, name: str, *arguments: str, has_reports: bool = True) -> Said:
        answer = self.command(name, *arguments, "--json", has_reports=has_reports)
        assert same(document, self.ours) == same(answer.json, self.theirs)
        return answer

    @property
    def other(self) -> str:
        return f"delta:{self.theirs}/clicks"


@pytest.fixture
def door(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Door(tmp_path, capsys)


def test_what_the_package_offers_is_known() -> None:
    assert sorted(nightkeep.__all__) == ["DataSource", "__version__", *NAMES]
    assert {getattr(nightkeep, name).__name__ for name in NAMES} == set(NAMES)
    assert set(nightkeep.__all__) <= set(dir(nightkeep))
    with pytest.raises(AttributeError, match="no attribute 'compact'"):
        _ = nightkeep.compact  # type: ignore[attr-defined]


@pytest.mark.slow
def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "{'pyarrow', 'pyspark', 'polars', 'numpy', 'great_expectations', 'jinja2', 'typer', 'pydantic'}"
    script = f"import sys, nightkeep; nightkeep.__version__; print(sorted({heavy} & set(sys.modules)))"
    # No engine, but a process of its own: this one has imported everything.
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.mark.slow
def test_a_command_loads_neither_spark_nor_pandas_but_for_work() -> None:
    loaded = "sorted({'pyspark', 'great_expectations', 'pandas'} & set(sys.modules))"
    script = f"import sys, nightkeep, nightkeep.commands.app; nightkeep.plan, nightkeep.check; print({loaded})"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.mark.slow
def test_a_command_loads_its_own_function_alone(tmp_path: Path) -> None:
    loaded = "sorted({'polars', 'nightkeep.api.advice', 'nightkeep.api.runs'} & {*sys.modules})"
    script = (
        "import sys\nfrom nightkeep.commands.app import main\n"
        f"try:\n    main(['history', '--reports', sys.argv[1]])\nexcept SystemExit:\n    print({loaded})\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_the_version_alone_loads_no_package_but_the_standard_library() -> None:
    loaded = "sorted({'pyspark', 'pandas', 'polars', 'pyarrow', 'numpy', 'sqlglot', 'typer', 'pydantic', 'jinja2'}"
    script = f"import sys; from nightkeep.__main__ import main; main(); print({loaded} & {{*sys.modules}}))"
    ended = subprocess.run(
        [sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=True, timeout=120
    )
    assert ended.stdout.splitlines() == [f"nightkeep {nightkeep.__version__}", "[]"]
    # With other options the command itself prints it.
    ended = subprocess.run(
        [sys.executable, "-m", "nightkeep", "--debug", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ended.stdout == f"nightkeep {nightkeep.__version__}\n"


def test_a_plan_is_what_the_command_prints(door: Door) -> None:
    plan = nightkeep.plan(
        door.table,
        operation="optimize",
        where="day >= '2026-11-02'",
        full=True,
        zorder=["click_id"],
        target_size="64MB",
        reports=door.reports,
    )
    options = ("--operation", "optimize", "--where", "day >= '2026-11-02'", "--full", "--zorder", "click_id")
    door.agrees(plan.to_json(), "plan", door.other, *options, "--target-size", "64MB")
    text = door.command("plan", door.other, *options, "--target-size", "64MB").out
    assert f"{plan}\n".replace(str(door.ours), str(door.theirs)) == text
    assert [document.operation for document in plan] == ["optimize"] and len(plan) == 1
    assert not door.reports.exists()


def test_several_operations_are_a_list_as_the_command_prints_it(door: Door) -> None:
    both = ["persist-deletes", "optimize"]
    plans = nightkeep.plan(door.table, operation=both, reports=door.reports)
    assert [document.operation for document in plans] == both and isinstance(plans.to_json(), list)
    door.agrees(plans.to_json(), "plan", door.other, "--operation", both[0], "--operation", both[1])


def test_the_engine_gets_how_large_the_table_is(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[int]()
    monkeypatch.setattr(Engine, "__exit__", lambda engine, *_: told.append(engine.stored_bytes or 0))
    stored = sum(file.stat().st_size for file in (door.ours / "clicks").rglob("*.parquet"))
    nightkeep.run(door.table, operation="optimize", full=True, no_check=True, reports=door.reports)
    assert len(told) == 1 and 0 < told[0] <= stored


def test_a_run_a_statement_and_their_history(door: Door) -> None:
    runs = nightkeep.run(door.table, operation="optimize", full=True, no_check=True, reports=door.reports)
    assert runs.outcome == "verified" and runs[0].committed_version is not None
    door.agrees(runs.to_json(), "run", door.other, "--operation", "optimize", "--full", "--no-check")
    document = nightkeep.sql(f"OPTIMIZE delta.`{door.ours}/clicks` FULL", no_check=True, reports=door.reports)
    door.agrees(document.to_json(), "sql", f"OPTIMIZE delta.`{door.theirs}/clicks` FULL", "--no-check")
    past = nightkeep.history(door.table, reports=door.reports)
    assert past[0] == runs[0] and past[1] == document and not past.unreadable
    door.agrees(past.to_json(), "history", door.other)
    pages = nightkeep.report(reports=door.reports)
    assert pages.index.is_file() and len(pages.runs) == 2 and str(pages) == str(pages.index)
    assert door.command("report", "--json").json.keys() == pages.to_json().keys()


def test_deleted_rows(door: Door) -> None:
    where = "click_id < 100"
    counted = nightkeep.delete(door.table, rows_where=where, dry_run=True, reports=door.reports)
    door.agrees(counted.to_json(), "delete", door.other, "--rows-where", where, "--dry-run")
    deleted = nightkeep.delete(door.table, rows_where=where, no_check=True, reports=door.reports)
    door.agrees(deleted.to_json(), "delete", door.other, "--rows-where", where, "--no-check")
    assert deleted.metrics.deleted_rows_marked == counted.extra["matching_rows"]
    with pytest.raises(UsageError, match="expected --rows-where or --keys, found neither"):
        nightkeep.delete(door.table)


def test_files_that_nothing_needs(door: Door) -> None:
    for place in (door.ours, door.theirs):
        left = place / "clicks" / "part-00000-left-over.c000.snappy.parquet"
        left.write_bytes(b"left over")
        os.utime(left, (1_700_000_000, 1_700_000_000))
    listed = nightkeep.sweep(door.table, reports=door.reports)
    door.agrees(listed.to_json(), "sweep", door.other)
    swept = nightkeep.sweep(
        door.table, older_than="8d", quarantine=True, no_check=True, run_id="aside", reports=door.reports
    )
    aside = ("--older-than", "8d", "--quarantine", "--no-check", "--run-id", "aside")
    door.agrees(swept.to_json(), "sweep", door.other, *aside)
    assert (listed.extra["orphans_total"], swept.outcome) == (1, "verified")
    back = nightkeep.restore(door.table, "aside", reports=door.reports)
    door.agrees(back.to_json(), "restore", door.other, "aside")
    expired = nightkeep.expire(door.table, retain_last=1, reports=door.reports)
    assert expired.extra["mode"] == "dry-run"
    door.agrees(expired.to_json(), "expire", door.other, "--retain-last", "1")


def test_advice_and_the_policy_in_force(door: Door) -> None:
    advice = nightkeep.advise(door.table)
    door.agrees(json.loads(json.dumps(advice.to_json())), "advise", door.other, has_reports=False)
    policy = door.ours / "tables.yaml"
    policy.write_text(f"version: 1\ntables: [{{name: shop.clicks, table: '{door.table}', target_size: 64MB}}]\n")
    explained = nightkeep.explain("shop.clicks", policy=policy)
    told = said(door._capture, "explain", "shop.clicks", "--policy", str(policy))
    assert told.out == f"{explained}\n" and explained.table == "shop.clicks"
    assert said(door._capture, "explain", "shop.clicks", "--policy", str(policy), "--json").json == explained.to_json()
    (size,) = (each for each in explained.to_json()["settings"] if each["setting"] == "target_size")  # type: ignore[attr-defined]
    assert size["value"].startswith("64") and size["from"] == f"{policy}:2"
    states = {each["operation"]: each["refused_for"] for each in explained.to_json()["operations"]}  # type: ignore[attr-defined]
    assert states == {"optimize": [], "persist-deletes": [], "delete": []}
    assert "handled, every night" in told.out


def test_a_hold_is_released_once(door: Door) -> None:
    for table, reports in ((door.table, door.reports), (door.other, door.theirs / "reports")):
        hold_or_note(str(reports), nightkeep.plan(table, reports=reports)[0])
    lifted, again = (nightkeep.release(door.table, reports=door.reports) for _ in range(2))
    assert (str(lifted), str(again)) == (f"{door.table}: hold of run plan released", f"{door.table}: no hold")
    assert (lifted.to_json()["lifted"], again.to_json()["lifted"]) == (True, False)
    door.agrees(lifted.to_json(), "release", door.other)
    door.agrees(again.to_json(), "release", door.other)


def test_a_notebook_shows_nothing_as_markup(door: Door) -> None:
    evil = "<script>alert('x')</script>"
    (plan,) = nightkeep.plan(door.table, operation="optimize", reports=door.reports)
    document = replace(plan, table=evil, reason=f"{evil} https://user:hunter2@host/")
    report = CheckReport(CheckStatus.FAILED, evil, results=(ExpectationResult(evil, evil, CheckStatus.FAILED, evil),))
    difference = DiffReport(1, 2, False, (UnitDiff(UnitKey(evil, None), True, 1, 1, Difference()),), (evil,), 0.0)
    advice = replace(nightkeep.advise(door.table), table=evil, reason=evil)
    broken = (Unreadable(evil, evil, evil, evil),)
    shown = (
        document,
        Runs((document,)),
        RunHistory((document,), broken),
        Release(evil, None),
        report,
        difference,
        advice,
        Pages(Path(evil), (Path(evil),), broken),
    )
    for each in shown:
        html = each._repr_html_()
        assert "<script" not in html and "&lt;script&gt;" in html and "hunter2" not in html, each
    assert "<table>" in nightkeep.explain(door.table)._repr_html_()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: nightkeep.plan(t, operation="compact"), "--operation: expected one of .*, found 'compact'"),
        (lambda t: nightkeep.run(t, verify="some"), "--verify: expected one of full, touched, found 'some'"),
        (lambda t: nightkeep.run(t, operation="sweep"), "a command of its own: nightkeep sweep"),
        (lambda t: nightkeep.expire(t, retain_last=0), "--retain-last: expected at least 1, found 0"),
        (lambda t: nightkeep.check(t, version=999), "--version: expected a version that"),
    ],
)
def test_a_slip_is_raised_before_any_work(door: Door, call: Callable[[str], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(door.table)
    assert not door.reports.exists()
