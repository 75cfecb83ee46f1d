"""Options of a DAG, the environment, and defaults: which one stands."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from nightkeep.errors import UsageError
from nightkeep_airflow.form import KEEPS_ROWS, job_options
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


def test_each_field_of_the_form_is_an_option_of_the_job() -> None:
    assert job_options(KEEPS_ROWS) == (
        "{{ '--operation=' ~ params.operation if params.operation else '' }}",
        "{{ '--where=' ~ params.where if params.where else '' }}",
        "{{ '--dry-run' if params.dry_run else '' }}",
        "{{ '--full' if params.full else '' }}",
        "{{ '--zorder=' ~ params.zorder if params.zorder else '' }}",
        "{{ '--hilbert=' ~ params.hilbert if params.hilbert else '' }}",
        "{{ '--target-size=' ~ params.target_size if params.target_size else '' }}",
        "{{ '--files=' ~ params.files if params.operation in ('sweep', 'expire') else '' }}",
        "{{ '--expect-plan=' ~ params.expect_plan if params.expect_plan else '' }}",
    )


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
