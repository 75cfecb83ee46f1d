"""Environment -> PluginSettings. Read when a DAG file is parsed. Default paths are relative to the DAG file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nightkeep.records import absolute


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Where things are and how patient the DAGs are; paths are absolute, mostly there are no deadlines.

    `reports` is a path, or the address of a bucket.

    A task or a run that takes longer than its timeout is ended. A scheduled run that starts later than `start_within`
    after its time does nothing: nobody wants last night's work in the middle of the day. `cores` is what a Spark
    application takes of a standalone cluster, None for all there are.
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


def from_environment(environ: Mapping[str, str], dags: Path) -> PluginSettings:
    """Settings of the DAG files in the folder `dags`.

    NIGHTKEEP_POLICY (`dags/tables.yaml`), NIGHTKEEP_REPORTS (`reports` beside the policy), NIGHTKEEP_JOBS
    (`jobs` beside `dags`), NIGHTKEEP_RETRY_DELAY_SECONDS (300), NIGHTKEEP_DEADLINE_MINUTES (none),
    NIGHTKEEP_TASK_TIMEOUT_MINUTES (360), NIGHTKEEP_RUN_TIMEOUT_MINUTES (1200), NIGHTKEEP_START_WITHIN_MINUTES (180)
    and NIGHTKEEP_SPARK_CORES (all).
    """

    def minutes(name: str, default: float) -> timedelta:
        return timedelta(minutes=float(environ.get(f"NIGHTKEEP_{name}_MINUTES") or default))

    policy = Path(environ.get("NIGHTKEEP_POLICY") or dags / "tables.yaml").absolute()
    deadline, cores = environ.get("NIGHTKEEP_DEADLINE_MINUTES"), environ.get("NIGHTKEEP_SPARK_CORES")
    return PluginSettings(
        policy=str(policy),
        reports=absolute(environ.get("NIGHTKEEP_REPORTS") or str(policy.parent / "reports")),
        jobs=str(Path(environ.get("NIGHTKEEP_JOBS") or dags.parent / "jobs").absolute()),
        retry_delay=timedelta(seconds=float(environ.get("NIGHTKEEP_RETRY_DELAY_SECONDS") or 300)),
        deadlines=(timedelta(minutes=float(deadline)),) if deadline else (),
        task_timeout=minutes("TASK_TIMEOUT", 360),
        run_timeout=minutes("RUN_TIMEOUT", 1200),
        start_within=minutes("START_WITHIN", 180),
        cores=int(cores) if cores else None,
    )
