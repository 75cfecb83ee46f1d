"""The command line and cron: what was done is sent to webhooks, once for each run id."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.commands import said
from tests.support.http_receiver import HttpReceiver, http_receiver

from nightkeep.api.notices import notify_of_check
from nightkeep.model import Operation, Outcome
from nightkeep.policy import load
from nightkeep.records import CheckStatus, RunDocument, hold
from nightkeep.records.check_report import CheckReport, ComparedVersions

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("clicks", "damaged"):
        shutil.copytree(ROOT / "samples/delta/shop.db/clicks", tmp_path / name)
    for commit in (tmp_path / "damaged/_delta_log").iterdir():
        commit.write_text("{")
    return tmp_path


def policy(lake: Path, receiver: HttpReceiver, *events: str, more: str = "") -> Path:
    file = lake / "tables.yaml"
    asked = ", ".join(f"{each}: [{{webhook: '{receiver.url}'}}{more}]" for each in events)
    file.write_text(
        f"version: 1\ndefaults: {{on: {{{asked}}}, where: \"day < '1900-01-01'\"}}\n"
        f"tables:\n- {{name: clicks, table: 'delta:{lake}/clicks'}}\n"
        f"- {{name: damaged, table: 'delta:{lake}/damaged'}}\n"
    )
    return file


def test_a_run_is_heard_of_once_for_each_run_id(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with http_receiver() as receiver:
        given = ("--policy", str(policy(lake, receiver, "unchanged", "failed")), "--reports", str(lake / "reports"))
        for run_id, table in (("a", "clicks"), ("a", "clicks"), ("b", "clicks"), ("a", "damaged")):
            ended = said(capfd, "run", table, "--run-id", run_id, *given)
            assert ended.status == (1 if table == "damaged" else 0), ended.err
        assert said(capfd, "plan", "clicks", *given).status == 0
    assert receiver.heard == [("unchanged", "clicks"), ("unchanged", "clicks"), ("failed", "damaged")]
    assert [each["events"][0]["run_id"] for each in receiver.messages] == ["a", "b", "a"]
    assert Path(receiver.messages[0]["events"][0]["document"]).is_file()


def test_a_sweep_is_heard_of_too(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with http_receiver() as receiver:
        given = ("--policy", str(policy(lake, receiver, *Outcome)), "--reports", str(lake / "reports"))
        said(capfd, "sweep", "clicks", *given)
    assert [table for _, table in receiver.heard] == ["clicks"]


@pytest.mark.slow
def test_what_only_airflow_reaches_is_a_sentence_and_a_dead_receiver_another(lake: Path) -> None:
    with http_receiver(500) as receiver:
        given = ("--policy", str(policy(lake, receiver, "unchanged", more=", alerts")))
        command = (sys.executable, "-m", "nightkeep", "run", "clicks", "--json", "--reports", str(lake / "reports"))
        path = {"PYTHONPATH": str(ROOT / "jobs")}
        ended = subprocess.run(
            [*command, *given], env={**os.environ, **path}, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 0 and json.loads(ended.stdout)["outcome"] == "unchanged"
    assert [line for line in ended.stderr.splitlines() if ", stage " not in line] == [
        "notifications: connection alerts: only a run in Airflow sends to these; they get no message of this one",
        "webhook 127.0.0.1: Nightkeep: clicks: unchanged: not delivered: expected an answer of success, found 500 "
        "Internal Server Error",
    ]


def test_a_hold_that_a_run_finds_is_notices_of(lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = RunDocument(
        run_id="nightly-0:clicks",
        table="clicks",
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH,
        reason="rows differ",
        started_at=NOW,
        finished_at=NOW,
    )
    hold(lake / "reports", "clicks", document)
    with http_receiver() as receiver:
        given = ("--policy", str(policy(lake, receiver, "hold", "skipped")), "--reports", str(lake / "reports"))
        for run_id in "ab":
            said(capfd, "run", "clicks", "--run-id", run_id, *given)
    assert receiver.heard == [("hold", "clicks"), ("skipped", "clicks"), ("skipped", "clicks")]


def test_a_failed_check_is_heard_of_once_for_each_version(lake: Path) -> None:
    with http_receiver() as receiver:
        chosen = load(policy(lake, receiver, "mismatch", "failed")).effective("clicks")
        for status, version, run_id in (
            (CheckStatus.PASSED, 7, "a"),
            (CheckStatus.FAILED, 7, "b"),
            (CheckStatus.FAILED, 7, "c"),
            (CheckStatus.FAILED, 8, "d"),
            (CheckStatus.ERRORED, None, "e"),
            (CheckStatus.ERRORED, None, "f"),
        ):
            compared = None if version is None else ComparedVersions(version, version - 1, False, 1)
            report = CheckReport(status, "2 of 3 units", "3 rows differ", compared=compared)
            notify_of_check(chosen, report, str(lake / "reports"), run_id)
    assert [kind for kind, _ in receiver.heard] == ["mismatch", "mismatch", "failed", "failed"]
    assert "3 rows differ" in receiver.messages[0]["text"]


def test_a_hold_that_cannot_be_read_hinders_nothing(
    lake: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (lake / "reports/holds").mkdir(parents=True)
    (lake / "reports/holds/clicks.json").write_text("{")
    with http_receiver() as receiver:
        given = ("--policy", str(policy(lake, receiver, "hold", "skipped")), "--reports", str(lake / "reports"))
        said(capfd, "run", "clicks", *given)
    assert receiver.heard == [("skipped", "clicks")] and "its hold cannot be read" in caplog.text
