"""A job that dies at one table: what it leaves says which, and the next job goes on with the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from samples.iceberg_places import place
from tests.formats.delta.lake import Lake

from nightkeep import history
from nightkeep.nights.settled import settle_results, unreported_results
from nightkeep.records import load_document
from nightkeep_airflow.submitted import MARK, family

ROOT = Path(__file__).parents[2]
POLICY = """\
version: 1
defaults: {{check: {{enabled: false}}}}
tables:
  - {{name: first, table: "delta:{folder}/first"}}
  - {{name: deadly, table: "iceberg:lake/shop.orders", operations: [persist-deletes, optimize]}}
  - {{name: last, table: "delta:{folder}/last"}}
"""
ALONE = ("--run-id-prefix", "night-1", "--one-by-one")
JOB = """
import sys
from nightkeep.commands import job
from nightkeep.spark.engine import Engine
from nightkeep.model import Operation
from nightkeep.tasks import inline, inline_exchange
Engine.mapper, Engine.exchange = lambda engine: inline, lambda engine: inline_exchange
checks = [each for each in sys.argv if each.startswith("check=")]
if checks:
    import os, signal
    from nightkeep.checking import on_spark
    from nightkeep.records.check_report import CheckReport
    sys.argv.remove(checks[0])
    told = checks[0].removeprefix("check=")
    def check(request, engine):
        if told == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return CheckReport(told, "all of it")
    on_spark.check = check
jobs = {"care": lambda told: job.run_job(told, operations=()), "check": job.check_job, "sweep": job.sweep_job}
sys.exit(jobs[sys.argv[1]](sys.argv[2:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy of three tables; a job that goes to the catalog of the second itself dies of it."""
    for name in ("first", "last"):
        lake = Lake(tmp_path / name, pa.schema({"id": pa.int64()}))
        for start in (0, 10):
            lake.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}))
    place(ROOT / "samples/iceberg", tmp_path / "iceberg")
    (tmp_path / "tables.yaml").write_text(POLICY.format(folder=tmp_path))
    return tmp_path


def job(
    folder: Path, kind: str, *more: str, tables: str = "first,deadly,last", deadly: bool = True, alone: bool = True
) -> int:
    """Its status: negative for a signal."""
    names = {"policy": "tables.yaml", "reports": "reports", "result": "result.json"}
    paths = [part for name, file in names.items() for part in (f"--{name}", str(folder / file))]
    catalog = {"PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/iceberg/catalog.db"}
    if deadly:
        catalog["PYICEBERG_CATALOG__LAKE__PY_CATALOG_IMPL"] = "tests.support.deadly_catalogs.spare_children"
    searched = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", JOB, kind, *paths, "--tables", tables, *(ALONE if alone else ALONE[:2]), *more],
        env={**os.environ, **catalog, "PYTHONPATH": searched},
        check=False,
        timeout=300,
        stderr=subprocess.DEVNULL,
    ).returncode


def submitted(folder: Path) -> int:
    """The status of spark-submit; the driver has ended by then as well."""
    names = {"policy": "tables.yaml", "reports": "reports", "result": "result.json"}
    paths = [part for name, file in names.items() for part in (f"--{name}", str(folder / file))]
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "jobs"), str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        MARK: str(folder),
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/iceberg/catalog.db",
        "PYICEBERG_CATALOG__LAKE__PY_CATALOG_IMPL": "tests.support.deadly_catalogs.end_spark",
    }
    submit = [Path(sys.executable).with_name("spark-submit"), "--master", "local[1]", ROOT / "jobs/care.py"]
    tables = ["--tables", "first,deadly,last"]
    done = subprocess.run(
        [*submit, *paths, *tables, *ALONE], env=environ, cwd=folder, check=False, timeout=300, stderr=subprocess.DEVNULL
    )
    assert not psutil.wait_procs(family(str(folder)), timeout=120)[1]
    return done.returncode


def told(folder: Path) -> list[tuple[str, str, str]]:
    entries: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())
    return [(entry["table"], entry["operation"], entry["outcome"]) for entry in entries]


@pytest.mark.extended
def test_the_next_job_reports_the_table_and_does_the_rest(folder: Path) -> None:
    assert job(folder, "care") == -signal.SIGKILL
    assert told(folder) == [("first", "optimize", "verified")]
    assert (folder / "result.json.hand").read_text() == "deadly"
    assert job(folder, "care", "--died=deadly", tables="deadly,last") == 0
    assert told(folder) == [("deadly", "persist-deletes", "failed"), ("last", "optimize", "verified")]
    assert not (folder / "result.json.hand").exists()
    (failed, _) = json.loads((folder / "result.json").read_text())
    assert failed["reason"] == "the process that worked on this table died; the rest of its group went on without it"
    assert load_document(failed["document"]).reason == failed["reason"]
    # A retry of the run may find it as it should be.
    assert job(folder, "care", tables="deadly", deadly=False) == 0
    assert told(folder) == [("deadly", "persist-deletes", "verified"), ("deadly", "optimize", "verified")]


@pytest.mark.extended
def test_of_several_tables_at_work_each_is_named(folder: Path) -> None:
    assert job(folder, "care", alone=False) == -signal.SIGKILL
    assert "deadly" in (folder / "result.json.hand").read_text().split()
    # The next job works on one after the other, and finds which one it was.
    assert job(folder, "care") == -signal.SIGKILL
    assert (folder / "result.json.hand").read_text() == "deadly"


@pytest.mark.extended
def test_what_was_done_before_is_reported_as_it_is(folder: Path) -> None:
    assert job(folder, "care", tables="first") == 0
    assert job(folder, "care", "--died=first", tables="first") == 0
    assert told(folder) == [("first", "optimize", "verified")]
    assert job(folder, "check", "--died=first", tables="first,last") == 0
    assert told(folder) == [("first", "optimize", "verified")]


def test_a_check_that_dies_is_a_failure_of_its_run_until_the_next_night_has_done_it(folder: Path) -> None:
    policy = folder / "tables.yaml"
    policy.write_text(policy.read_text().replace("enabled: false", "enabled: true"))
    assert job(folder, "care", "check=dies", tables="first,last") == -signal.SIGKILL
    reports = str(folder / "reports")
    left = settle_results(["first", "last"], unreported_results(reports, "night-1", ["first", "last"], ()))
    unfinished = "optimize: published, but its check did not report"
    nothing = "no job reported on this table; see the log of its group"
    assert [(each.outcome, each.reason) for each in left] == [("failed", unfinished), ("failed", nothing)]
    assert [(each.table, each.outcome) for each in history(policy=policy, reports=reports)] == [("first", "failed")]
    assert job(folder, "care", "check=passed", "--run-id-prefix", "night-2", tables="first,last") == 0
    assert told(folder) == [
        ("first", "optimize", "verified"),
        ("first", "optimize", "unchanged"),
        ("last", "optimize", "verified"),
    ]
    past = [(each.run_id, each.outcome) for each in history("first", policy=policy, reports=reports)]
    assert past == [("night-1:first", "verified"), ("night-2:first", "unchanged")]


@pytest.mark.extended
def test_a_sweep_reports_the_table_and_does_the_rest(folder: Path) -> None:
    assert job(folder, "sweep") == -signal.SIGKILL
    assert (folder / "result.json.hand").read_text() == "deadly"
    assert job(folder, "sweep", "--died=deadly", tables="deadly,last") == 0
    assert told(folder) == [("deadly", "sweep", "failed"), ("last", "sweep", "unchanged")]


@pytest.mark.extended
def test_a_driver_without_its_jvm_begins_no_other_table(folder: Path) -> None:
    assert submitted(folder) != 0
    assert told(folder) == [("first", "optimize", "verified")]
    assert (folder / "result.json.hand").read_text() == "deadly"
