"""Environment and options of a DAG -> PluginSettings. Read when a DAG file is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from nightkeep.errors import UsageError
from nightkeep.places import absolute
from nightkeep.policy.files import beside
from nightkeep_airflow.needs import Needs

DEFAULT_NAME: Final = "nightkeep_spark"
"""The pool, and the connection to Spark, unless others are given."""


_OF_SPARK: Final = ("conf", "env_vars", "archives", "py_files", "files")
"""Options of a DAG that are arguments of SparkSubmitOperator."""


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Where things are and how patient the DAGs are; paths are absolute, mostly there are no deadlines.

    `policy`, `reports` and `jobs` are paths or addresses; an address is kept as given.

    A task or a run that takes longer than its timeout is ended. A scheduled run that starts later than `start_within`
    after its time does nothing: nobody wants last night's work in the middle of the day. `looks`: whether a process
    without Spark looks at the tables first. `cores` is what a Spark
    application takes of a standalone cluster, None for all there are. `submitting` are further arguments of the
    operators that submit jobs: their connection or way to submit, what goes with the job, pool, queue and
    executor_config.
    """

    policy: str
    reports: str
    jobs: str
    retry_delay: timedelta
    deadlines: tuple[timedelta, ...]
    task_timeout: timedelta
    run_timeout: timedelta
    start_within: timedelta
    cores: int | None
    looks: bool
    submitting: Mapping[str, Any]

    @property
    def needs(self) -> Needs:
        """What the first task of a DAG looks for."""
        connection, pool = str(self.submitting.get("conn_id", "")), str(self.submitting["pool"])
        return Needs(self.policy, self.reports, self.jobs, connection, pool)


def from_environment(
    environ: Mapping[str, str], dags: Path | None, given: Mapping[str, Any] | None = None
) -> PluginSettings:
    """Settings of DAG files in the folder `dags`. What is `given` by name stands.

    NIGHTKEEP_POLICY (`dags/tables.yaml`), NIGHTKEEP_REPORTS (`reports` beside the policy), NIGHTKEEP_JOBS
    (`jobs` beside `dags` if it is there, else the scripts of the installed package), NIGHTKEEP_RETRY_DELAY_SECONDS
    (300), NIGHTKEEP_DEADLINE_MINUTES (none), NIGHTKEEP_TASK_TIMEOUT_MINUTES (360), NIGHTKEEP_RUN_TIMEOUT_MINUTES
    (1200), NIGHTKEEP_START_WITHIN_MINUTES (180) and NIGHTKEEP_SPARK_CORES (all).

    Raises UsageError where nothing names the policy.
    """
    options = given or {}

    def minutes(name: str, default: float) -> timedelta:
        text = environ.get(f"NIGHTKEEP_{name}_MINUTES")
        found: timedelta = options.get(name.lower(), timedelta(minutes=float(text or default)))
        return found

    named = options.get("policy") or environ.get("NIGHTKEEP_POLICY") or (dags and dags / "tables.yaml")
    if named is None:
        raise UsageError("policy: expected the policy file of the DAG, or NIGHTKEEP_POLICY, found neither")
    policy = absolute(str(named))
    reports = options.get("reports") or environ.get("NIGHTKEEP_REPORTS") or beside(policy, "reports")
    deadline, cores = environ.get("NIGHTKEEP_DEADLINE_MINUTES"), environ.get("NIGHTKEEP_SPARK_CORES")
    seconds = float(environ.get("NIGHTKEEP_RETRY_DELAY_SECONDS") or 300)
    passed = {name: options[name] for name in ("queue", "executor_config") if name in options}
    if "submit" in options:
        way: dict[str, Any] = {"submit": options["submit"]}
    else:
        way = {"conn_id": options.get("connection", DEFAULT_NAME)}
        way |= {name: options[name] for name in _OF_SPARK if name in options} | dict(options.get("spark_submit", {}))
    return PluginSettings(
        policy=policy,
        reports=absolute(str(reports)),
        jobs=absolute(str(options.get("jobs") or environ.get("NIGHTKEEP_JOBS") or _jobs(dags))),
        retry_delay=options.get("retry_delay", timedelta(seconds=seconds)),
        deadlines=tuple(options.get("deadlines", [timedelta(minutes=float(deadline))] if deadline else ())),
        task_timeout=minutes("TASK_TIMEOUT", 360),
        run_timeout=minutes("RUN_TIMEOUT", 1200),
        start_within=minutes("START_WITHIN", 180),
        cores=options.get("cores", int(cores) if cores else None),
        looks=options.get("looks", True),
        submitting={**way, "pool": options.get("pool", DEFAULT_NAME), **passed},
    )


def _jobs(dags: Path | None) -> Path:
    """The folder of the job scripts: that of a clone, else that of the wheel."""
    if dags is not None and (dags.parent / "jobs" / "care.py").is_file():
        return dags.parent / "jobs"
    return installed_jobs()


def installed_jobs() -> Path:
    """The folder of the job scripts of the installed package."""
    found = find_spec("nightkeep")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / "job_scripts"
