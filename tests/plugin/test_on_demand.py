"""The form of a manual run over the samples: whatever operation it offers ends in an outcome."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal
from samples.leftovers import plant
from samples.working_copy import copy_tables
from tests.formats.delta.lake import Lake
from tests.support.airflow_home import ROOT, Airflow, DagRun, airflow_home, finished, with_database
from tests.support.extended import some_extended

import nightkeep
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, held, hold, load_history
from nightkeep_airflow.form import KEEPS_ROWS, fault_of, form

TABLES = {
    Operation.UPGRADE: "shop.orders",
    Operation.PERSIST_DELETES: "stream.orders",
    Operation.OPTIMIZE: "lake.clicks",
    Operation.DELETE: "lake.clicks",
    Operation.UPDATE: "shop.events_raw",
    Operation.EXPIRE: "shop.customers",
    Operation.SWEEP: "lake.clicks",
    Operation.RESTORE: "shop.orders",
    Operation.RELEASE: "lake.readings",
}
"""A table of the samples for each operation that any form offers."""
FORMS = {
    "on_demand": KEEPS_ROWS,
    "change_rows": (Operation.DELETE, Operation.UPDATE),
    "undo": (Operation.RELEASE, Operation.RESTORE),
}
WITHOUT_SPARK = {Operation.RESTORE, Operation.RELEASE}


@pytest.fixture(scope="module")
def airflow(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    """Of the policy and the jobs that are delivered."""
    scripted = with_database(airflow_home(tmp_path_factory.mktemp("form"), ()), airflow_database)
    (scripted.home / "jobs/calls.jsonl").touch()
    warehouse = scripted.home / "warehouse"
    copy_tables(warehouse)
    plant(warehouse, time.time())
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


def filled(airflow: Airflow, operation: Operation) -> dict[str, object]:
    """What people fill in for an operation of the form, as its JSON has it."""
    table, reports = TABLES[operation], str(airflow.home / "reports")
    fields: dict[str, object] = {}
    if operation is Operation.DELETE:
        fields = {"rows_where": "user_id = 1"}
    elif operation is Operation.UPDATE:
        fields = {"rows_where": "device = 2", "set": ["value = value + 1"]}
    elif operation is Operation.EXPIRE:
        schema = airflow.home / "warehouse/paimon/shop.db/customers/schema/schema-0"
        kept = json.loads(schema.read_text())
        kept["options"] |= {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 s"}
        schema.write_text(json.dumps(kept))
    elif operation is Operation.RELEASE:
        now = datetime.now(UTC)
        failed = RunDocument(
            run_id="night", table=table, format="delta", operation=Operation.OPTIMIZE, outcome=Outcome.MISMATCH,
            reason="rows differ", go_back="RESTORE TABLE ...", started_at=now, finished_at=now,
        )  # fmt: skip
        hold(reports, table, failed)
        fields = {"reason": "looked at"}
    elif operation is Operation.RESTORE:
        found = nightkeep.sweep(
            f"paimon:{airflow.home}/warehouse/paimon/shop.db/orders", quarantine=True, no_check=True, reports=reports
        )
        fields = {"run_id": found.run_id}
    return {"table": table, "operation": operation, **fields}


def asked(airflow: Airflow, form: dict[str, object]) -> tuple[DagRun, RunDocument]:
    """A run of the form, and the document of it that is stored last."""
    dag_id = next(each for each, offered in FORMS.items() if form["operation"] in offered)
    done = airflow.call("airflow", "dags", "test", dag_id, "--conf", json.dumps(form))
    run = finished(airflow, dag_id, done.stdout + done.stderr)
    stored = load_history(str(airflow.home / "reports"))
    return run, [each for each in stored if each.run_id.startswith(f"{dag_id}-")][-1]


@pytest.mark.parametrize("operation", some_extended(TABLES, keep=4))
def test_every_operation_that_a_form_offers_ends_in_an_outcome(airflow: Airflow, operation: Operation) -> None:
    """First what would be done, then that."""
    form, table = filled(airflow, operation), TABLES[operation]
    before = held(str(airflow.home / "reports"), table)
    run, planned = asked(airflow, form)
    assert (run.state, run.tasks["outcome", table]) == ("success", ("skipped", 1)), run.log
    assert (planned.outcome, (planned.reason or "")[:8]) == ("skipped", "dry run:")
    form["expect_plan"] = planned.extra["plan_digest"]
    assert held(str(airflow.home / "reports"), table) == before
    run, done = asked(without_spark(airflow) if operation in WITHOUT_SPARK else airflow, {**form, "dry_run": False})
    assert (run.state, run.tasks["outcome", table]) == ("success", ("success", 1)), run.log
    assert (done.operation, done.outcome, bool(run.assets)) == (operation, "verified", operation.rewrites)
    if operation not in WITHOUT_SPARK:
        assert done.expectations.status == "passed"
    page = next(each for each in (airflow.home / "reports/pages").glob(f"*{done.run_id.removesuffix(f':{table}')}*"))
    text = page.read_text().replace("<wbr>", "")
    assert table in text and operation in text


@pytest.mark.extended
def test_a_form_changes_rows_as_the_command_does(airflow: Airflow, tmp_path: Path) -> None:
    by_form, by_command = (airflow.home / f"warehouse/{name}" for name in ("by_form", "by_command"))
    for place in (by_form, by_command):
        shutil.copytree(ROOT / "samples/delta/shop.db/clicks", place)
    (tmp_path / "keys.jsonl").write_text('{"user_id": 3}\n{"user_id": 5}\n')
    for change in (
        {"operation": "delete", "rows_where": "page = '/home' OR user_id < 2"},
        {"operation": "delete", "keys": str(tmp_path / "keys.jsonl")},
        {"operation": "update", "rows_where": "user_id % 2 = 0", "set": ["page = concat(page, '?')"]},
    ):
        run, document = asked(airflow, {"table": f"delta:{by_form}", "dry_run": False, **change})
        assert (run.state, document.outcome) == ("success", "verified"), run.log
        given = {name: value for name, value in change.items() if name != "operation"}
        command = nightkeep.delete if change["operation"] == "delete" else nightkeep.update
        command(f"delta:{by_command}", reports=tmp_path / "reports", **given)  # type: ignore[arg-type]
    form_rows, command_rows = (
        pl.DataFrame(nightkeep.read(f"delta:{place}").read_all()) for place in (by_form, by_command)
    )
    assert_frame_equal(form_rows, command_rows, check_row_order=False)


NONSENSE: dict[str, tuple[str, dict[str, Any]]] = {
    "delete: expected rows_where or keys, found none": ("change_rows", {"operation": "delete"}),
    "delete: expected rows_where or keys, found rows_where and keys": (
        "change_rows",
        {"operation": "delete", "rows_where": "a = 1", "keys": "k.csv"},
    ),
    "set: expected operation update, found delete": (
        "change_rows",
        {"operation": "delete", "rows_where": "a = 1", "set": ["a = 1"]},
    ),
    "update: expected set, found none": ("change_rows", {"operation": "update", "rows_where": "a = 1"}),
    "restore: expected run_id, found none": ("undo", {"operation": "restore"}),
    "reason: expected operation release, found restore": (
        "undo",
        {"operation": "restore", "run_id": "n", "reason": "so"},
    ),
    "zorder: expected operation optimize, found upgrade": ("on_demand", {"operation": "upgrade", "zorder": "a"}),
    "where: expected operation upgrade or persist-deletes or optimize, found sweep": (
        "on_demand",
        {"operation": "sweep", "where": "a = 1"},
    ),
    "files: expected operation sweep or expire, found what the policy asks for": ("on_demand", {"files": "delete"}),
    "zorder, hilbert: expected one of the two, as files are laid along one curve; found both": (
        "on_demand",
        {"zorder": "a", "hilbert": "a"},
    ),
}


@pytest.mark.parametrize("fault", NONSENSE)
def test_fields_that_do_not_fit_are_answered_in_a_sentence(fault: str) -> None:
    dag_id, given = NONSENSE[fault]
    offered = FORMS[dag_id]
    left = {name: each.value for name, each in form(offered, ()).items() if each.has_value}
    assert fault_of({**left, **given}, offered) == fault


def test_a_form_has_the_fields_that_its_operations_take() -> None:
    common = ["table", "operation"]
    assert {dag_id: [*form(offered, ())] for dag_id, offered in FORMS.items()} == {
        "on_demand": [*common, "where", "dry_run", "full", "zorder", "hilbert", "target_size", "files", "expect_plan"],
        "change_rows": [*common, "dry_run", "rows_where", "keys", "set", "expect_plan"],
        "undo": [*common, "dry_run", "run_id", "reason", "expect_plan"],
    }
    offered = {each for offered in FORMS.values() for each in offered}
    # An audit has a DAG of its own, and nothing that a dry run could show.
    assert offered == {*TABLES} == {*Operation} - {Operation.AUDIT}


@pytest.mark.extended
def test_a_form_that_does_not_fit_fails_at_its_first_task(airflow: Airflow) -> None:
    wrong = json.dumps({"table": "lake.clicks", "operation": "update", "rows_where": "user_id = 1"})
    done = airflow.call("airflow", "dags", "test", "change_rows", "--conf", wrong)
    run = finished(airflow, "change_rows", done.stdout + done.stderr)
    assert run.state == "failed" and "update: expected set, found none" in run.log
    assert {state for (task, _), (state, _) in run.tasks.items() if task != "asked"} <= {"upstream_failed", None}
