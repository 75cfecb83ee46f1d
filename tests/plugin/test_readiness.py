"""The first task of a run, and `nightkeep doctor` beside an Airflow: what is missing is stated before any Spark."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.toolchain import free_port
from tests.support.airflow_home import ROOT, Airflow, airflow_home, finished, with_database, without_jvm
from tests.support.services import process

from nightkeep_airflow.needs import Needs
from nightkeep_airflow.readiness import ask_driver, pool_rows
from nightkeep_airflow.settings import from_environment

SECRET = "hunter2hunter2"


@pytest.fixture
def airflow(airflow_database: Path, tmp_path: Path) -> Airflow:
    made = with_database(airflow_home(tmp_path, ["t.fine"]), airflow_database)
    made.script(care={})
    return without_jvm(made)


def given(airflow: Airflow, **variables: str) -> Airflow:
    return replace(airflow, environ={**airflow.environ, **variables})


def older_python(folder: Path, version: str) -> str:
    """An interpreter whose Nightkeep has this version, and of that release nothing but the version."""
    model = folder / "older" / "nightkeep" / "model"
    model.mkdir(parents=True)
    for package in (model.parent, model):
        (package / "__init__.py").touch()
    (model / "version.py").write_text(f'__version__ = "{version}"\n')
    python = folder / "older-python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/older exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.mark.slow
def test_a_night_fails_in_its_first_task_with_a_sentence_for_each_missing_thing(
    airflow: Airflow, tmp_path: Path
) -> None:
    (tmp_path / "reports").write_text("a file where the folder should be")
    (tmp_path / "tables.yaml").write_text("version: 1\nnights: many\n")
    missing = given(airflow, PYSPARK_DRIVER_PYTHON=older_python(tmp_path, "9.1.0"), NIGHTKEEP_JOBS=str(tmp_path))
    environ = {name: value for name, value in missing.environ.items() if name != "AIRFLOW_CONN_NIGHTKEEP_SPARK"}
    done = replace(missing, environ=environ).call("airflow", "dags", "test", "nightly", "2026-11-20")
    run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert run.state == "failed"
    assert run.tasks["in_time", -1] == ("failed", 1)
    assert run.tasks["policy_groups", -1][0] == "upstream_failed" and run.care == ()
    for sentence in (
        f"{tmp_path}/tables.yaml:2: nights: ",
        f"{tmp_path}/reports: expected a place where documents can be written",
        "connection nightkeep_spark: expected a connection of type spark with a master, found none; airflow conn",
        f"{tmp_path}: expected the scripts of the jobs, found no care.py",
        f"driver {tmp_path}/older-python: expected Nightkeep 0.1, as here (0.1.0), found Nightkeep 9.1.0",
    ):
        assert sentence in run.log, sentence


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://user:{SECRET}@127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_a_catalog_that_does_not_answer_is_logged_and_fails_by_its_own_name(
    airflow: Airflow, tmp_path: Path, silent: str
) -> None:
    policy = (tmp_path / "tables.yaml").read_text()
    (tmp_path / "tables.yaml").write_text(f"{policy}\n  - {{name: t.shut, table: 'iceberg:shut/a.b'}}\n")
    catalog = {"PYICEBERG_CATALOG__SHUT__TYPE": "rest", "PYICEBERG_CATALOG__SHUT__URI": silent}
    done = given(airflow, NIGHTKEEP_PATIENCE_SECONDS="2", **catalog).call(
        "airflow", "dags", "test", "nightly", "2026-11-20"
    )
    run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert run.tasks["in_time", -1] == ("success", 1) and run.tasks["outcome", "t.fine"][0] == "success"
    assert "catalog shut: expected an answer, found" in run.log and SECRET not in run.log


@pytest.mark.extended
def test_a_form_fails_in_its_first_task_as_well(airflow: Airflow, tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where the folder should be")
    form = json.dumps({"table": "t.fine"})
    done = airflow.call("airflow", "dags", "test", "on_demand", "--conf", form)
    run = finished(airflow, "on_demand", done.stdout + done.stderr)
    assert run.tasks["asked", -1] == ("failed", 1) and run.care == ()
    assert f"{tmp_path}/reports: expected a place where documents can be written" in run.log


# A run of each DAG as the scheduler begins it: in one transaction, with its serialized DAG.
BEGIN = """
import json
from airflow.models import DagBag
from airflow.dag_processing.dagbag import sync_bag_to_db, DagBag
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from airflow.sdk import timezone
from sqlalchemy import select
from nightkeep_airflow.pool_listener import given_parameters, missing_of

with create_session() as session:
    if session.get(DagBundleModel, "dags-folder") is None:
        session.add(DagBundleModel(name="dags-folder"))
sync_bag_to_db(DagBag(bundle_name="dags-folder"), "dags-folder", None)
with create_session() as session:
    run = session.scalar(select(DagRun).where(DagRun.dag_id == "nightly"))
    dag = SerializedDagModel.get_dag("nightly", session=session)
    if run is None:
        run = DagRun(dag_id="nightly", run_id="manual", run_type=DagRunType.MANUAL, state=DagRunState.QUEUED,
                     run_after=timezone.utcnow(), conf={"kept": 1}, triggered_by=DagRunTriggeredByType.CLI)
        session.add(run)
        session.flush()
    run.dag = dag
    run.set_state(DagRunState.RUNNING)
    run.notify_dagrun_state_changed(msg="started")
with create_session() as session:
    run = session.scalar(select(DagRun).where(DagRun.dag_id == "nightly"))
    print(json.dumps([missing_of(run), given_parameters(run), run.conf]))
"""


@pytest.mark.slow
def test_what_is_missing_of_its_pool_is_a_parameter_of_a_run_until_it_is_there(airflow: Airflow) -> None:
    airflow.call("airflow", "pools", "delete", "nightkeep_spark")
    missing, given, conf = airflow.python(BEGIN)
    assert missing.startswith("pool nightkeep_spark: expected a pool of this name") and "airflow pools set" in missing
    assert (given, conf) == ({"kept": 1}, {"kept": 1, "nightkeep.missing": missing})
    airflow.call("airflow", "pools", "set", "nightkeep_spark", "1", "Spark")
    assert airflow.python(BEGIN) == [None, {"kept": 1}, {"kept": 1}]


@pytest.mark.extended
def test_a_run_without_its_pool_fails_in_its_first_task_under_a_scheduler(airflow: Airflow, tmp_path: Path) -> None:
    """By Airflow's own services as processes: `airflow dags test` knows no pools."""
    airflow.call("airflow", "pools", "delete", "nightkeep_spark")
    port = free_port()
    environ = {
        **airflow.environ,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API_AUTH__JWT_SECRET": "only for this test" * 4,
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__API__WORKERS": "1",
    }
    served = replace(airflow, environ=environ)
    program = str(Path(sys.executable).with_name("airflow"))
    with ExitStack() as running:
        for command in (["api-server", "--port", str(port)], ["dag-processor"], ["scheduler"]):
            running.enter_context(process([program, *command], environ, tmp_path))
        _until(lambda: served.query("select count(*) from serialized_dag where dag_id = 'nightly'") == [(1,)])
        served.call("airflow", "dags", "unpause", "nightly", "--yes")
        assert served.call("airflow", "dags", "trigger", "nightly", "--run-id", "by-hand").returncode == 0
        state = "select state from dag_run where run_id = 'by-hand'"
        _until(lambda: served.query(state) in ([("failed",)], [("success",)]))
    tasks = dict(served.query("select task_id, state from task_instance where run_id = 'by-hand'"))
    assert tasks["in_time"] == "failed" and tasks["policy_groups"] == "upstream_failed"
    log = "\n".join(path.read_text() for path in (tmp_path / "logs").rglob("*in_time*/*.log"))
    assert "pool nightkeep_spark: expected a pool of this name" in log


def _until(is_so: Callable[[], bool], seconds: float = 150.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(1)


@pytest.mark.slow
def test_doctor_asks_what_each_dag_needs(airflow: Airflow, tmp_path: Path) -> None:
    fine = airflow.call("python", "-m", "nightkeep", "doctor", "--json")
    rows = json.loads(fine.stdout)
    assert fine.returncode == 0, fine.stdout
    assert {"pool", "connection", "jobs", "driver", "java", "airflow"} <= {row["check"] for row in rows}
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "team.py").write_text(
        "from nightkeep_airflow.dags import nightly\n"
        f"nightly('team', policy={str(tmp_path / 'tables.yaml')!r}, reports={str(tmp_path / 'theirs')!r}, "
        f"jobs={str(tmp_path / 'jobs')!r}, pool='teams', connection='their_spark')\n"
    )
    theirs = given(airflow, AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"))
    assert theirs.call("airflow", "dags", "reserialize").returncode == 0
    found = theirs.call("python", "-m", "nightkeep", "doctor")
    assert found.returncode == 1
    assert "pool teams: expected a pool of this name" in found.stdout
    assert "connection their_spark: expected a connection of type spark" in found.stdout
    assert "nightkeep_spark" not in found.stdout and f"{tmp_path}/theirs" in found.stdout


def test_what_a_first_task_is_given_is_whole() -> None:
    settings = from_environment(
        {"NIGHTKEEP_POLICY": "/p.yaml", "NIGHTKEEP_REPORTS": "s3://b/r"}, None, {"pool": "lake"}
    )
    assert Needs.from_json(json.loads(json.dumps(settings.needs.to_json()))) == settings.needs
    assert (settings.needs.pool, settings.needs.connection) == ("lake", "nightkeep_spark")


def test_pools_are_named_once() -> None:
    rows = pool_rows(["a", "b", "a"], ["b"])
    assert [(each.subject, each.status) for each in rows] == [("pool a", "missing"), ("pool b", "passed")]


@pytest.mark.slow
def test_a_driver_without_nightkeep_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "python"
    empty.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    empty.chmod(0o755)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(empty))
    (found,) = ask_driver(str(ROOT / "jobs"), ())
    assert found.status == "missing" and "No module named 'nightkeep'" in found.found
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(tmp_path / "none"))
    assert "found no such interpreter; name an interpreter in PYSPARK_DRIVER_PYTHON" in str(ask_driver("jobs", ())[0])


@pytest.mark.slow
def test_the_driver_of_this_environment_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert not [str(each) for each in ask_driver(str(ROOT / "jobs"), ()) if each.hinders]
