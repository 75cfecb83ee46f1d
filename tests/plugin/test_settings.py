"""Options of a DAG, the environment, and defaults: which one stands."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict

from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep_airflow.form import KEEPS_ROWS, form, job_options
from nightkeep_airflow.settings import from_environment

ENVIRON = {
    "NIGHTKEEP_POLICY": "/environment/tables.yaml",
    "NIGHTKEEP_RETRY_DELAY_SECONDS": "7",
    "NIGHTKEEP_DEADLINE_MINUTES": "9",
    "NIGHTKEEP_TASK_TIMEOUT_MINUTES": "11",
    "NIGHTKEEP_SPARK_CORES": "3",
}


def test_what_is_given_stands_also_where_it_is_nothing(tmp_path: Path) -> None:
    given = {"retry_delay": timedelta(0), "deadlines": [], "start_within": timedelta(0), "policy": tmp_path / "p.yaml"}
    settings = from_environment(ENVIRON, None, given)
    assert (settings.retry_delay, settings.deadlines, settings.start_within) == (timedelta(0), (), timedelta(0))
    assert (settings.policy, settings.reports) == (str(tmp_path / "p.yaml"), str(tmp_path / "reports"))
    assert (settings.task_timeout, settings.cores) == (timedelta(minutes=11), 3)


def test_the_environment_stands_over_defaults() -> None:
    settings = from_environment(ENVIRON, Path("/dags"))
    assert (settings.retry_delay, settings.deadlines) == (timedelta(seconds=7), (timedelta(minutes=9),))
    assert settings.policy == "/environment/tables.yaml" and settings.run_timeout == timedelta(minutes=1200)
    assert settings.submitting == {"conn_id": "nightkeep_spark", "pool": "nightkeep_spark"}


def test_a_relative_folder_of_jobs_is_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_environment({**ENVIRON, "NIGHTKEEP_JOBS": "jobs"}, None).jobs == str(tmp_path / "jobs")


def test_jobs_are_those_of_the_clone_else_those_of_the_wheel(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    assert from_environment(ENVIRON, tmp_path / "dags").jobs.endswith("/nightkeep/job_scripts")
    (tmp_path / "jobs" / "care.py").touch()
    assert from_environment(ENVIRON, tmp_path / "dags").jobs == str(tmp_path / "jobs")


def test_a_dag_without_any_policy_is_refused() -> None:
    with pytest.raises(UsageError, match="NIGHTKEEP_POLICY, found neither"):
        from_environment({}, None)


def job_arguments(operations: Collection[Operation], **given: object) -> list[str]:
    """The options of a job as Airflow renders them, without blank ones."""
    fields = form(operations, ())
    values = {name: each.value if each.has_value else None for name, each in fields.items()} | given
    params = ParamsDict({name: Param(value) for name, value in values.items()}).dump()
    templates = DAG("form").get_template_env()
    rendered = [
        templates.from_string(each).render(params=params, dag_run=SimpleNamespace(triggering_user_name="ada"))
        for each in job_options(operations)
    ]
    return [each for each in rendered if each.strip()]


def test_a_form_as_it_opens_asks_for_a_dry_run() -> None:
    assert job_arguments(KEEPS_ROWS) == ["--dry-run"]


GIVEN: list[tuple[Collection[Operation], dict[str, object], list[str]]] = [
    (
        KEEPS_ROWS,
        {"operation": "optimize", "where": "a = 1", "full": True, "zorder": "a,b", "target_size": "1MB"},
        ["--operation=optimize", "--where=a = 1", "--dry-run", "--full", "--zorder=a,b", "--target-size=1MB"],
    ),
    (
        KEEPS_ROWS,
        {"operation": "optimize", "hilbert": "a", "dry_run": False, "expect_plan": "abc"},
        ["--operation=optimize", "--hilbert=a", "--expect-plan=abc"],
    ),
    (KEEPS_ROWS, {"operation": "sweep"}, ["--operation=sweep", "--dry-run", "--files=quarantine"]),
    (
        (Operation.DELETE, Operation.UPDATE),
        {"operation": "delete", "rows_where": "a = 'it''s'"},
        ["--operation=delete", "--dry-run", "--rows-where=a = 'it''s'"],
    ),
    (
        (Operation.DELETE, Operation.UPDATE),
        {"operation": "delete", "keys": "k.csv"},
        ["--operation=delete", "--dry-run", "--keys=k.csv"],
    ),
    (
        (Operation.DELETE, Operation.UPDATE),
        {"operation": "update", "rows_where": "a = 1", "set": ["b = 2"]},
        ["--operation=update", "--dry-run", "--rows-where=a = 1", '--set=["b = 2"]'],
    ),
    (
        (Operation.RELEASE, Operation.RESTORE),
        {"operation": "restore", "run_id": "n"},
        ["--operation=restore", "--dry-run", "--run-id=n"],
    ),
    (
        (Operation.RELEASE, Operation.RESTORE),
        {"operation": "release", "reason": "seen", "dry_run": False},
        ["--operation=release", "--reason=seen", "--user=ada"],
    ),
]


@pytest.mark.parametrize(("offered", "given", "expected"), GIVEN)
def test_each_field_of_the_form_is_an_option_of_the_job(
    offered: Collection[Operation], given: dict[str, object], expected: list[str]
) -> None:
    assert job_arguments(offered, **given) == expected


def test_addresses_are_kept_as_they_are_given() -> None:
    given = {"policy": "s3://lake/p/tables.yaml", "reports": "s3://lake/reports", "jobs": "local:///opt/job_scripts"}
    settings = from_environment(ENVIRON, Path("/dags"), given)
    assert (settings.policy, settings.reports, settings.jobs) == tuple(given.values())
    beside = from_environment({"NIGHTKEEP_POLICY": "s3://lake/p/tables.yaml"}, None)
    assert (beside.policy, beside.reports) == ("s3://lake/p/tables.yaml", "s3://lake/p/reports")


def test_what_goes_with_a_job_is_of_its_submission() -> None:
    given = {"connection": "lake", "archives": "s3://lake/env.tar.gz#environment", "conf": {"spark.yarn.queue": "low"}}
    more = {"spark_submit": {"yarn_queue": "nights"}, "queue": "of airflow"}
    assert from_environment(ENVIRON, None, given | more).submitting == {
        "conn_id": "lake",
        "archives": "s3://lake/env.tar.gz#environment",
        "conf": {"spark.yarn.queue": "low"},
        "yarn_queue": "nights",
        "pool": "nightkeep_spark",
        "queue": "of airflow",
    }
    submit = object()
    own = from_environment(ENVIRON, None, {"submit": submit, "connection": "not used", "pool": "emr"})
    assert own.submitting == {"submit": submit, "pool": "emr"}
