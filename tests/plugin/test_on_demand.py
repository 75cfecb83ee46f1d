"""The form of a manual run over the samples: whatever operation it offers ends in an outcome."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from samples.working_copy import copy_tables
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


@pytest.mark.parametrize("operation", some_extended(RUN_OPERATIONS, keep=1))
def test_every_operation_that_the_form_offers_ends_in_an_outcome(airflow: Airflow, operation: Operation) -> None:
    form = {"table": TABLES[operation], "operation": operation, "dry_run": False}
    done = airflow.call("airflow", "dags", "test", "on_demand", "--conf", json.dumps(form))
    run = finished(airflow, "on_demand", done.stdout + done.stderr)
    assert run.state == "success", run.log
    assert run.tasks["outcome", TABLES[operation]] == ("success", 1)
    (document,) = load_history(str(airflow.home / "reports"), TABLES[operation])
    assert (document.operation, document.outcome, document.expectations.status) == (operation, "verified", "passed")
