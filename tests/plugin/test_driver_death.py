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
