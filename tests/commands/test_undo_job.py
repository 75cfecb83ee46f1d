"""Jobs that undo, without Spark: a hold is released and files are restored exactly as a dry run showed it."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, held, hold, load_document
from nightkeep.records.releases import read_releases

SAMPLE = Path(__file__).parents[2] / "samples/delta/shop.db/clicks"
ORPHAN = f"part-00000-{'0' * 8}-0000-4000-8000-000000000000-c000.snappy.parquet"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLE, tmp_path / "clicks")
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n  - {{name: c, table: 'delta:{tmp_path}/clicks'}}\n")
    return tmp_path


def job(lake: Path, prefix: str, *options: str) -> RunDocument:
    places = ["--policy", f"{lake}/tables.yaml", "--reports", f"{lake}/reports", "--result", f"{lake}/result.json"]
    run_job([*places, "--tables", "c", "--run-id-prefix", prefix, "--without-session", *options], operations=())
    (entry,) = json.loads((lake / "result.json").read_text())
    return load_document(entry["document"])


def put_on_hold(lake: Path) -> None:
    now = datetime.now(UTC)
    failed = RunDocument(
        run_id="night",
        table="c",
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH,
        reason="rows differ",
        go_back="RESTORE TABLE c",
        started_at=now,
        finished_at=now,
    )
    hold(f"{lake}/reports", "c", failed)


def test_a_hold_is_released_as_it_was_shown_or_not(lake: Path) -> None:
    put_on_hold(lake)
    shown = job(lake, "shown", "--operation=release", "--dry-run")
    assert (shown.outcome, shown.go_back) == ("skipped", "RESTORE TABLE c")
    assert str(shown.reason).endswith(": rows differ; to go back: RESTORE TABLE c")
    put_on_hold(lake)
    expected = f"--expect-plan={shown.extra['plan_digest']}"
    other = job(lake, "other", "--operation=release", expected)
    assert (other.outcome, held(f"{lake}/reports", "c") is None) == ("skipped", False)
    assert str(other.reason).startswith("the plan is not the one that was shown")

    shown = job(lake, "again", "--operation=release", "--dry-run")
    expected = f"--expect-plan={shown.extra['plan_digest']}"
    done = job(lake, "done", "--operation=release", "--user=ada", "--reason=looked at", expected)
    assert (done.outcome, done.reason) == ("verified", "hold of run night released by ada: looked at")
    assert held(f"{lake}/reports", "c") is None
    assert [(each.user, each.reason) for each in read_releases(f"{lake}/reports", "c")] == [("ada", "looked at")]
    assert job(lake, "none", "--operation=release").outcome == "unchanged"


@pytest.mark.slow
def test_files_are_restored_as_they_were_shown_or_not(lake: Path) -> None:
    orphan = next((lake / "clicks").glob("day=*/*.parquet")).with_name(ORPHAN)
    orphan.write_bytes(b"x")
    os.utime(orphan, (time.time() - 90 * 86_400,) * 2)
    swept = nightkeep.sweep("c", quarantine=True, no_check=True, policy=lake / "tables.yaml", reports=lake / "reports")
    restore = ["--operation=restore", f"--run-id={swept.run_id}"]

    shown = job(lake, "shown", *restore, "--dry-run")
    assert (shown.outcome, orphan.exists()) == ("skipped", False)
    assert shown.extra["notes"] == [f"would be restored: {orphan}, 1 bytes"]
    assert job(lake, "other", *restore, "--expect-plan=0").outcome == "skipped" and not orphan.exists()
    done = job(lake, "done", *restore, f"--expect-plan={shown.extra['plan_digest']}")
    assert (done.outcome, done.extra["restored_run"], orphan.read_bytes()) == ("verified", swept.run_id, b"x")
    assert job(lake, "again", *restore, "--dry-run").outcome == "unchanged"
    unknown = job(lake, "unknown", "--operation=restore", "--run-id=never")
    assert (unknown.outcome, "nothing of run never is in quarantine" in str(unknown.reason)) == ("failed", True)


def test_the_command_restores_what_its_dry_run_counted(lake: Path) -> None:
    orphan = next((lake / "clicks").glob("day=*/*.parquet")).with_name(ORPHAN)
    orphan.write_bytes(b"x")
    os.utime(orphan, (time.time() - 90 * 86_400,) * 2)
    places = {"policy": lake / "tables.yaml", "reports": lake / "reports"}
    swept = nightkeep.sweep("c", quarantine=True, no_check=True, **places)

    shown = nightkeep.restore("c", swept.run_id, dry_run=True, **places)
    assert (shown.outcome, shown.reason, orphan.exists()) == (
        "skipped",
        "dry run: 1 file of 1 bytes would be restored, nothing was touched",
        False,
    )
    other = nightkeep.restore("c", swept.run_id, expect_plan="0", **places)
    assert (other.outcome, orphan.exists()) == ("skipped", False)
    done = nightkeep.restore("c", swept.run_id, expect_plan=str(shown.extra["plan_digest"]), **places)
    assert (done.outcome, orphan.read_bytes()) == ("verified", b"x")
