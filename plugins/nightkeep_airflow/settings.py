"""Environment -> Settings. Read when a DAG file is parsed; whatever is not set falls beside the DAG file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are and how patient the DAGs are; paths are absolute, mostly there are no deadlines."""

    policy: str
    reports: str
    jobs: str
    retry_delay: timedelta
    deadlines: tuple[timedelta, ...]


def from_environment(environ: Mapping[str, str], dags: Path) -> Settings:
    """Settings of the DAG files in the folder `dags`.

    NIGHTKEEP_POLICY (`dags/tables.yaml`), NIGHTKEEP_REPORTS (`reports` beside the policy), NIGHTKEEP_JOBS
    (`jobs` beside `dags`), NIGHTKEEP_RETRY_DELAY_SECONDS (300) and NIGHTKEEP_DEADLINE_MINUTES (none).
    """
    policy = Path(environ.get("NIGHTKEEP_POLICY") or dags / "tables.yaml").absolute()
    minutes = environ.get("NIGHTKEEP_DEADLINE_MINUTES")
    return Settings(
        policy=str(policy),
        reports=str(Path(environ.get("NIGHTKEEP_REPORTS") or policy.parent / "reports").absolute()),
        jobs=str(Path(environ.get("NIGHTKEEP_JOBS") or dags.parent / "jobs").absolute()),
        retry_delay=timedelta(seconds=float(environ.get("NIGHTKEEP_RETRY_DELAY_SECONDS") or 300)),
        deadlines=(timedelta(minutes=float(minutes)),) if minutes else (),
    )
