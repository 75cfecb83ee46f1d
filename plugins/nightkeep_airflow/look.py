"""Groups of tables -> what needs no Spark, done at once; the rest of each group is left for a session.

A plan reads metadata alone. So a process of this task, which has no slot of the pool of Spark jobs, finds the tables
with nothing to do, those that a policy or a hold skips, and those that are refused; a dry run ends here. Spark starts
only for tables that have work, and for what this process could not finish.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from nightkeep.nights.run_tables import run_policy
from nightkeep.nights.settled import JobResult, as_json, ended_without_session, parse
from nightkeep.places import is_address, read_text
from nightkeep.policy import left_groups
from nightkeep.records.job_result import read_end
from nightkeep_airflow.driver_side import Cluster, DriverSide, submitting_environment
from nightkeep_airflow.job_operator import TablesOperator
from nightkeep_airflow.operators import CARE_JOB, ENTRIES
from nightkeep_airflow.releases import AirflowFailException
from nightkeep_airflow.result_file import result_file
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import installed_jobs
from nightkeep_airflow.submitted import MARK, end

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

_AT_ONCE: Final = 1000
"""Tables of one process: their names are one argument of it, and arguments have a longest size."""


def batched(tables: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (tables[start : start + size] for start in range(0, len(tables), size))


class LookOperator(TablesOperator):
    """Looks at the tables of all `groups`. Returns the groups of tables that are left, the fewest that hold them, and
    passes on what is known of the others."""

    template_fields: Sequence[str] = (*TablesOperator.template_fields, "groups")

    def __init__(self, *, groups: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.groups = groups
        self._process = ""

    def execute(self, context: Context) -> list[list[str]]:
        """Raises AirflowFailException where the job did not understand its policy or arguments: no session would."""
        groups: list[list[str]] = self.groups
        tables = [table for group in groups for table in group]
        looked = [entry for some in batched(tables, _AT_ONCE) for entry in self._look(some, context)]
        entries = ended_without_session(looked)
        done = {entry.table for entry in entries}
        context["ti"].xcom_push(key=ENTRIES, value=[as_json(entry) for entry in entries])
        self.log.info("%d of %d tables need no Spark", len(done), len(tables))
        run = context["dag_run"]
        policy = run_policy(self.policy, self.reports, run_prefix(run.dag_id, run.run_id))
        return [[*group] for group in left_groups(policy, groups, {*tables} - done)]

    def on_kill(self) -> None:
        end(self._process)

    def _look(self, tables: Sequence[str], context: Context) -> tuple[JobResult, ...]:
        """What a process reports; of one that died, what it had reported."""
        jobs = str(installed_jobs()) if is_address(self.jobs) else self.jobs
        self._process = uuid4().hex
        with result_file(self.reports) as result:
            job = self.job(CARE_JOB, tables, context, result=result, rest=["--without-session"])
            environ = submitting_environment(DriverSide(Cluster.LOCAL, remote=False), os.environ, jobs)
            words = [environ["PYSPARK_DRIVER_PYTHON"], str(Path(jobs, Path(job.script).name)), *job.arguments]
            try:
                done = subprocess.run(words, env={**environ, MARK: self._process}, check=False)
            finally:
                end(self._process)
            stopped = read_end(result)
            if stopped is not None and stopped.is_usage:
                raise AirflowFailException(f"the job did not start: {stopped.reason}")
            if done.returncode:
                self.log.warning("the process ended with status %s; what it did not report is left", done.returncode)
            with suppress(ValueError, KeyError, OSError):
                return parse(read_text(result) or "[]")
            return ()
