"""What a job does where it is to start no Spark: tables that need none end, and the others are left untouched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake

from nightkeep import history

ROOT = Path(__file__).parents[2]
BLOCKED = "import sys; sys.modules['pyspark'] = None; sys.modules['great_expectations'] = None\n"
JOB = f"{BLOCKED}from nightkeep.commands.job import run_job\nsys.exit(run_job(sys.argv[1:], operations=()))"


def append(folder: Path, files: int) -> None:
    lake = Lake(folder, pa.schema({"id": pa.int64()}))
    for start in range(files):
        lake.append(pa.table({"id": [start]}))


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """One file, many small files, none; and a policy that pauses one."""
    append(tmp_path / "done", 1)
    append(tmp_path / "small", 12)
    append(tmp_path / "paused", 12)
    (tmp_path / "tables.yaml").write_text(
        "version: 1\ntables:\n"
        f"  - {{name: done, table: 'delta:{tmp_path}/done'}}\n"
        f"  - {{name: small, table: 'delta:{tmp_path}/small'}}\n"
        f"  - {{name: paused, table: 'delta:{tmp_path}/paused', pause: moved}}\n"
        f"  - {{name: gone, table: 'delta:{tmp_path}/gone'}}\n"
    )
    return tmp_path


def result(folder: Path, *more: str) -> dict[str, str]:
    """The outcomes by table; the job runs where pyspark cannot be imported."""
    places = [f"--policy={folder}/tables.yaml", f"--reports={folder}/reports", f"--result={folder}/result.json"]
    words = [*places, "--tables=done,small,paused,gone", "--run-id-prefix=night", *more]
    done = subprocess.run(
        [sys.executable, "-c", JOB, *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "jobs")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return {entry["table"]: entry["outcome"] for entry in json.loads((folder / "result.json").read_text())}


@pytest.mark.slow
def test_a_table_with_work_is_left_as_it_is(tables: Path) -> None:
    before = sorted(tables.joinpath("small").rglob("*"))
    assert result(tables, "--without-session") == {"done": "unchanged", "paused": "skipped", "gone": "failed"}
    assert sorted(tables.joinpath("small").rglob("*")) == before
    stored = history(policy=tables / "tables.yaml", reports=tables / "reports")
    assert {document.table for document in stored.documents} == {"done", "paused", "gone"}
    assert not (tables / "result.json.hand").exists()


@pytest.mark.slow
def test_a_dry_run_needs_no_session(tables: Path) -> None:
    outcomes = result(tables, "--without-session", "--dry-run")
    assert outcomes == {"done": "unchanged", "small": "skipped", "paused": "skipped", "gone": "failed"}
