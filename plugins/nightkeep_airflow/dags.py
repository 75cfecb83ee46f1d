"""DAGs of a deployment, each made by one call: `nightly`, `weekly`, `audit`, `on_demand`. A DAG file is three lines:

    from nightkeep_airflow.dags import nightly

    nightly("orders_nightly", policy="/opt/lake/tables.yaml", reports="s3://lake-reports/nightkeep", pool="lake")

What a call does not name comes from the environment (`settings.from_environment`), else from the folder of `beside`,
the DAG file. A DAG of a bundle names its reports, as the bundle's folder is not theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

from airflow.sdk import DAG, Param, dag, task

from nightkeep.model import Operation
from nightkeep.nights.run_tables import RunOrder, find_one, suggested
from nightkeep_airflow.admission import require_known
from nightkeep_airflow.alerts import missed_deadline
from nightkeep_airflow.form import KEEPS_ROWS, fault_of, form, job_options
from nightkeep_airflow.job import Submit
from nightkeep_airflow.needs import Needs
from nightkeep_airflow.parameters import TAG
from nightkeep_airflow.pool_listener import given_parameters, missing_of
from nightkeep_airflow.readiness import require_ready
from nightkeep_airflow.releases import AirflowFailException, CronTriggerTimetable, DeadlineAlert, DeadlineReference
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import PluginSettings, from_environment
from nightkeep_airflow.tasks import care_for, scheduled_groups
from nightkeep_airflow.unchecked_chains import audit_for, sweep_for

Callback = Callable[[Mapping[str, Any]], object]


class DagOptions(TypedDict, total=False):
    """What all factories take.

    `policy`: the policy file. `reports`: the folder of documents. `jobs`: the folder of the job scripts, by default
    those of the installed package. Each is a path, or an address (`s3://...`), which is kept as given.

    `connection`, `pool`, `queue` and `executor_config` are those of the tasks that submit jobs. `conf`, `env_vars`,
    `archives`, `py_files`, `files` go with a job, and `spark_submit` has further arguments of SparkSubmitOperator.
    `submit` is another way to submit: a function from a `job.Job` to an operator that waits for the job's end.

    `looks`: a process of Airflow's worker looks at all tables before Spark starts, and ends what needs no session.
    False where that machine does not reach the tables.

    `cores`: what a Spark application takes of a standalone cluster. A task or a run that takes
    longer than `task_timeout` or `run_timeout` is ended; a scheduled run that starts later than `start_within` after
    its time does nothing. `deadlines`: a line in the log, and messages, when a run takes longer. `default_args` are
    those of every task. `beside` is the DAG file: where the policy and the jobs are if nothing names them.
    """

    beside: str | Path
    policy: str | Path
    reports: str | Path
    jobs: str | Path
    connection: str
    conf: Mapping[str, str]
    env_vars: Mapping[str, str]
    archives: str
    py_files: str
    files: str
    spark_submit: Mapping[str, object]
    submit: Submit
    looks: bool
    pool: str
    queue: str
    executor_config: Mapping[str, object]
    cores: int
    retries: int
    retry_delay: timedelta
    task_timeout: timedelta
    run_timeout: timedelta
    start_within: timedelta
    deadlines: Sequence[timedelta]
    default_args: Mapping[str, object]
    on_success_callback: Callback | Sequence[Callback]
    on_failure_callback: Callback | Sequence[Callback]
    tags: Sequence[str]
    doc_md: str
    is_paused_upon_creation: bool


def nightly(
    dag_id: str = "nightly", *, schedule: Any = "0 2 * * *", timezone: str = "UTC", **options: Unpack[DagOptions]
) -> DAG:
    """Every night, every table of the policy: maintain it, check it, report it.

    `schedule` is a cron expression, or whatever else Airflow takes as a schedule, such as an asset. One run at a time:
    two would only race. A missed night is not caught up on, and a run that starts hours late does nothing.
    """
    settings = _settings(options)

    def build() -> None:
        care_for(scheduled_groups(settings), settings)

    return _make(dag_id, build, settings, options, schedule=_timetable(schedule, timezone), retries=2)


def weekly(
    dag_id: str = "orphan_sweep", *, schedule: Any = "0 4 * * 0", timezone: str = "UTC", **options: Unpack[DagOptions]
) -> DAG:
    """Every week, every table of the policy: expire old versions, then sweep files that nothing needs."""
    settings = _settings(options)

    def build() -> None:
        sweep_for(scheduled_groups(settings, RunOrder.FILE), settings)

    return _make(dag_id, build, settings, options, schedule=_timetable(schedule, timezone), retries=2)


def audit(
    dag_id: str = "audit", *, schedule: Any = "30 5 * * *", timezone: str = "UTC", **options: Unpack[DagOptions]
) -> DAG:
    """Every day, every table of the policy: prove what others committed since the last audit. Reads only."""
    settings = _settings(options)

    def build() -> None:
        audit_for(scheduled_groups(settings, RunOrder.AUDITS), settings)

    return _make(dag_id, build, settings, options, schedule=_timetable(schedule, timezone), retries=1)


def on_demand(
    dag_id: str = "on_demand", *, operations: Sequence[str] = KEEPS_ROWS, **options: Unpack[DagOptions]
) -> DAG:
    """One table, now: a form for what to do with it. A dry run, the default, shows what would be done.

    The form offers `operations`, by default those that change no row. Airflow gives rights by DAG: what fewer people
    may do, such as `delete` and `update`, or `release` and `restore`, is a DAG of its own.
    Who filled in the form sees how it went, so nothing is tried again unless `retries` is given.
    """
    offered = tuple(map(Operation, operations))
    settings = _settings(options)
    known = form(offered, suggested(settings.policy, settings.reports))

    @task(retries=0)
    def asked(needs: Mapping[str, str], *, params: Any = None, dag_run: Any = None) -> list[list[str]]:
        """The table of the form, as a group of one, by the name that reports have for it."""
        require_known(given_parameters(dag_run), [*known])
        if (fault := fault_of(params, offered)) is not None:
            raise AirflowFailException(fault)
        needed = Needs.from_json(needs)
        require_ready(needed, missing=missing_of(dag_run), places=False)
        prefix, table = run_prefix(dag_run.dag_id, dag_run.run_id), params["table"]
        return [[find_one(needed.policy, needed.reports, prefix, table).effective(table).address.name]]

    def build() -> None:
        groups = asked(needs=settings.needs.to_json())
        care_for(groups, settings, operation="{{ params.operation or '' }}", options=job_options(offered))

    # Nothing starts by itself, so there is nothing to hold back.
    options = {"is_paused_upon_creation": False, **options}
    return _make(dag_id, build, settings, options, schedule=None, retries=0, params=known)


def _settings(options: DagOptions) -> PluginSettings:
    beside = options.get("beside")
    return from_environment(os.environ, None if beside is None else Path(beside).parent, options)


def _timetable(schedule: Any, timezone: str) -> Any:
    """A cron expression waits for its next time when its DAG is switched on in between."""
    if not isinstance(schedule, str):
        return schedule
    return CronTriggerTimetable(schedule, timezone=timezone, run_immediately=timedelta(0))


def _make(
    dag_id: str,
    build: Callable[[], None],
    settings: PluginSettings,
    options: DagOptions,
    *,
    schedule: Any,
    retries: int,
    params: Mapping[str, Param] | None = None,
) -> DAG:
    default_args: dict[str, Any] = {"retries": options.get("retries", retries), "retry_delay": settings.retry_delay}
    callbacks: dict[str, Any] = {name: options.get(name) for name in ("on_success_callback", "on_failure_callback")}
    paused = options.get("is_paused_upon_creation")
    # Only on request: `airflow dags test` of a DAG with a deadline ends in an error (apache/airflow#73428).
    missed = missed_deadline(settings.policy, settings.reports)
    deadlines = [
        DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, interval=after, callback=missed)
        for after in settings.deadlines
    ]
    made: DAG = dag(
        dag_id,
        schedule=schedule,
        dagrun_timeout=settings.run_timeout,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=paused,
        default_args=default_args | dict(options.get("default_args", {})),
        deadline=deadlines or None,
        params=dict(params or {}),
        doc_md=options.get("doc_md"),
        tags=[*dict.fromkeys([TAG, *options.get("tags", ())])],
        **callbacks,
    )(build)()
    return made
