"""The form of a manual run over the samples: whatever operation it offers ends in an outcome."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from samples.working_copy import copy_tables
from tests.formats.delta.lake import Lake
from tests.support.airflow_home import ROOT, Airflow, airflow_home, finished, with_database
from tests.support.extended import some_extended

from nightkeep.model import RUN_OPERATIONS, Operation
from nightkeep.records import load_history

TABLES = {
    Operation.UPGRADE: "shop.orders",
    Operation.PERSIST_DELETES: "stream.orders",
    Operation.OPTIMIZE: "lake.clicks",
}


@pytest.fixture(scope="module")
def airflow(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    """Of the policy and the jobs that are delivered."""
    scripted = with_database(airflow_home(tmp_path_factory.mktemp("form"), ()), airflow_database)
    (scripted.home / "jobs/calls.jsonl").touch()
    warehouse = scripted.home / "warehouse"
    copy_tables(warehouse)
    ours = {
        "NIGHTKEEP_POLICY": str(ROOT / "dags/tables.yaml"),
        "NIGHTKEEP_JOBS": str(ROOT / "jobs"),
        "NIGHTKEEP_WAREHOUSE": str(warehouse),
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{warehouse}/iceberg/catalog.db",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "GX_ANALYTICS_ENABLED": "false",
    }
    return replace(scripted, environ={**scripted.environ, **ours})


def without_spark(airflow: Airflow) -> Airflow:
    """The same, whose connection names a program that submits nothing."""
    (airflow.home / "bin").mkdir(exist_ok=True)
    (airflow.home / "bin/spark3-submit").write_text("#!/bin/sh\necho no Spark is to start >&2\nexit 1\n")
    (airflow.home / "bin/spark3-submit").chmod(0o755)
    connection = {"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": "spark3-submit"}}
    found = f"{airflow.home}/bin{os.pathsep}{os.environ['PATH']}"
    ours = {"PATH": found, "AIRFLOW_CONN_NIGHTKEEP_SPARK": json.dumps(connection)}
    return replace(airflow, environ={**airflow.environ, **ours})


def test_a_plan_starts_no_spark(airflow: Airflow) -> None:
    done = without_spark(airflow).call("airflow", "dags", "test", "on_demand", "--conf", '{"table": "lake.clicks"}')
    run = finished(airflow, "on_demand", done.stdout + done.stderr)
    assert run.state == "success", run.log
    assert run.tasks["outcome", "lake.clicks"] == ("skipped", 1)
    (document,) = load_history(str(airflow.home / "reports"), "lake.clicks")
    assert (document.outcome, document.reason) == ("skipped", "dry run: this is the plan, nothing was changed")
    assert document.plan.units


def test_a_night_with_nothing_to_do_starts_no_spark_and_has_one_task_for_it(airflow: Airflow, tmp_path: Path) -> None:
    names = [f"t.{number}" for number in range(20)]
    for name in names:
        Lake(tmp_path / name, pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    entries = [f"- {{name: {name}, table: 'delta:{tmp_path}/{name}'}}" for name in names]
    (tmp_path / "tables.yaml").write_text("\n".join(["version: 1", "tables:", *entries]))
    idle = without_spark(airflow)
    ours = {"NIGHTKEEP_POLICY": str(tmp_path / "tables.yaml"), "NIGHTKEEP_REPORTS": str(tmp_path / "reports")}
    done = idle.call("airflow", "dags", "test", "nightly", "2026-11-20", **ours)
    run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert run.state == "success", run.log
    assert run.tasks["unchanged", -1] == ("success", 1)
    assert [state for (task, _), (state, _) in run.tasks.items() if task in ("group.care", "outcome")] in (
        ["skipped", "skipped"],
        [],
    )
    assert {each.outcome for each in load_history(str(tmp_path / "reports"))} == {"unchanged"}


@pytest.mark.parametrize("operation", some_extended(RUN_OPERATIONS, keep=1))
def test_every_operation_that_the_form_offers_ends_in_an_outcome(airflow: Airflow, operation: Operation) -> None:
    form = {"table": TABLES[operation], "operation": operation, "dry_run": False}
    done = airflow.call("airflow", "dags", "test", "on_demand", "--conf", json.dumps(form))
    run = finished(airflow, "on_demand", done.stdout + done.stderr)
    assert run.state == "success", run.log
    assert run.tasks["outcome", TABLES[operation]] == ("success", 1)
    (document,) = load_history(str(airflow.home / "reports"), TABLES[operation])
    assert (document.operation, document.outcome, document.expectations.status) == (operation, "verified", "passed")
