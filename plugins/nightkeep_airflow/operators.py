"""Tables of one group -> spark-submit -> result file -> XCom. Each try reads only its own result.

A care job checks what it publishes. A CheckOperator starts Spark only for published versions without a check.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from nightkeep.errors import NightkeepError
from nightkeep.model import OPERATION_TABLE, Outcome
from nightkeep.model.version import __version__
from nightkeep.records import read_text
from nightkeep.spark.settings import driver_memory, given_by_file
from nightkeep_airflow.connection import require_client_mode, require_no_secret
from nightkeep_airflow.links import ReportLink
from nightkeep_airflow.releases import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from nightkeep_airflow.result_file import result_file, tables_at_death
from nightkeep_airflow.results import JobResult, as_json, awaits_check, parse, refresh_result, reported
from nightkeep_airflow.run_tables import found_option, night_option, run_policy
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.submitted import MARK, end

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

JOBS: Final[Mapping[str, str]] = {each: row.script for each, row in OPERATION_TABLE.items() if row.script is not None}
CARE_JOB, CHECK_JOB = "care.py", "check.py"

# Outcomes that a retry may improve: a lost race is planned again, and a failure may be the machine's.
RETRIED = frozenset({Outcome.CONFLICTED, Outcome.FAILED})

# How Airflow's hook reports the exit status of a job that did not understand its policy or its arguments.
_NOT_UNDERSTOOD = "Error code is: 2."

# How many jobs are started one after the other. Each continues behind the tables at which the one before it died: the
# first one may only have found that one of several is deadly.
_JOBS = 5

# The memory of a task if no policy sets it.
_TASK_MEMORY = 2 << 30

# Airflow sends SIGKILL five seconds after SIGTERM, so Spark must have ended by then.
_GRACE_SECONDS = 3


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a job knows of the one that died before it: the table that did it, and whether more than one may have."""

    died: str | None = None
    one_by_one: bool = False

    @property
    def options(self) -> list[str]:
        died = [] if self.died is None else [f"--died={self.died}"]
        return [*died, *(["--one-by-one"] if self.one_by_one else [])]


class NightkeepSparkOperator(SparkSubmitOperator):
    """Submits one job script for a group of tables, in client mode, and reads back what it reports.

    `jobs` is the folder of the scripts, `tables` the group, `options` further arguments of the script, of
    which blank ones are left out. Whatever the job publishes is safe to submit again under the same run.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "tables", "policy", "reports", "options")
    operator_extra_links = (ReportLink(),)

    def __init__(
        self,
        *,
        jobs: str,
        policy: str,
        reports: str,
        tables: Sequence[str] = (),
        options: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.jobs = jobs
        self.policy = policy
        self.reports = reports
        self.tables = tables
        self.options = options
        self._mark = uuid4().hex
        self._killed = False

    @property
    def tables_label(self) -> str:
        """The name of a mapped task and its Spark application: the first table, and the number of the others."""
        first, more = next(iter(self.tables), "no table"), len(self.tables) - 1
        return f"{first} and {more} more" if more > 0 else first

    def submit(self, script: str, tables: Sequence[str], context: Context) -> tuple[JobResult, ...]:
        """Run `script` over `tables` and return its result. All its processes have ended then.

        If a job dies at a table, another job reports that table as failed and works on the rest. If it dies while
        several are at work, the next job works on one after the other, so that a death is blamed on one. Raises
        AirflowException if too many jobs die or if one wrote no result, and AirflowFailException if the job did not
        understand its policy or arguments, as a retry would fail too.
        """
        results: tuple[JobResult, ...] = ()
        left, rest = list(tables), _Rest()
        for more in reversed(range(_JOBS)):
            entries, at = self._submit_once(script, left, context, rest=rest, last=not more)
            if not at:
                results += entries
                break
            # The next job reports everything about the tables from the first one on that has no results.
            reported = {entry.table for entry in entries} - set(at)
            first = next((n for n, table in enumerate(left) if table not in reported), len(left))
            results += tuple(entry for entry in entries if entry.table in left[:first])
            left, rest = left[first:], _Rest(at[0] if len(at) == 1 else None, rest.one_by_one or len(at) > 1)
        for entry in results:
            self.log.info("%s", entry)
        return results

    def _submit_once(
        self, script: str, tables: Sequence[str], context: Context, *, rest: _Rest, last: bool
    ) -> tuple[tuple[JobResult, ...], tuple[str, ...]]:
        """The results of a job, and the tables at which it died, if another job can continue behind it."""
        with result_file(self.reports) as result:
            at = tuple[str, ...]()
            run = context["dag_run"]
            prefix = run_prefix(run.dag_id, run.run_id)
            self.name = f"nightkeep {run.dag_id} {self.task_id}: {self.tables_label}"
            arguments = [*self._arguments(tables, prefix), *rest.options]
            self._prepare(script, [*arguments, "--result", result], tables, prefix)
            try:
                self._submitted(context)
            except (AirflowFailException, AirflowTaskTimeout):
                raise
            except AirflowException as failure:
                at = tables_at_death(result)
                if last or self._killed or at == (rest.died,) or not at or not set(at) <= set(tables):
                    raise
                self.log.warning("the job died at %s; another one goes on: %s", ", ".join(at), failure)
            text = read_text(result)
            if text is None:
                raise AirflowException(f"{script}: expected a result file at exit status 0, found none")
            entries = parse(text)
            self._note_versions(entries)
            return entries, at

    def _note_versions(self, entries: Sequence[JobResult]) -> None:
        """Log where a job has another version of Nightkeep than this task, which it has accepted."""
        other = sorted({entry.nightkeep for entry in entries} - {"", __version__})
        if other:
            self.log.warning("this task has Nightkeep %s, the job has %s", __version__, ", ".join(other))

    def on_kill(self) -> None:
        """End spark-submit, its JVM, the driver's Python and its workers; a cluster ends executors of a lost driver."""
        self._killed = True
        end(self._mark, grace_seconds=_GRACE_SECONDS)
        if self._hook:
            super().on_kill()

    def _submitted(self, context: Context) -> None:
        try:
            super().execute(context)
        except AirflowTaskTimeout:
            raise
        except AirflowException as failure:
            if _NOT_UNDERSTOOD in str(failure):
                why = (
                    "the job did not understand its policy, its arguments or the version of this task; its log names it"
                )
                raise AirflowFailException(f"{why}: {failure}") from failure
            raise
        finally:
            # A driver may outlive its JVM, also after a timeout, when Airflow calls `on_kill` next.
            end(self._mark, grace_seconds=_GRACE_SECONDS)

    def _prepare(self, script: str, arguments: list[str], tables: Sequence[str], prefix: str) -> None:
        self.application = str(Path(self.jobs) / script)
        self.application_args = arguments
        self.conf = {**_python_path(self.jobs, "spark.executorEnv.PYTHONPATH"), **(self.conf or {})}
        self._mark = uuid4().hex
        # The provider's operator would reuse its first hook, which holds the command of the earlier submit.
        self._hook = None
        self.env_vars = {**driver_environment(os.environ, self.jobs), **(self.env_vars or {}), MARK: self._mark}
        given = {**given_by_file({**os.environ, **self.env_vars}), **self.conf}
        connection = self._get_hook()._connection
        master = str(connection["master"])
        require_client_mode(self._conn_id, connection["deploy_mode"], given)
        # The hook logs the command, which contains both.
        require_no_secret(f"connection {self._conn_id}: the host", master)
        for table in tables:
            require_no_secret("an address of a table", table)
        # A session cannot set the driver's memory, as its JVM is already running. A setting of the deployment is kept.
        if self._driver_memory is None and "spark.driver.memory" not in given:
            self._driver_memory = driver_memory(master, self._task_memory(tables, prefix))

    def _arguments(self, tables: Sequence[str], prefix: str) -> list[str]:
        return [
            *("--policy", self.policy, "--reports", self.reports, *_named(tables), "--expects", __version__),
            *("--run-id-prefix", prefix, *found_option(self.reports, prefix)),
            *night_option(self.reports, prefix),
            *(option for option in self.options if option.strip()),
        ]

    def _task_memory(self, tables: Sequence[str], prefix: str) -> int:
        """The largest task memory of these tables, in bytes. A table without a valid policy is reported by the job."""
        sizes = list[int]()
        with suppress(NightkeepError, OSError):
            policy = run_policy(self.policy, self.reports, prefix)
            for table in tables:
                with suppress(NightkeepError):
                    sizes.append(policy.effective(table).settings.task_memory)
        return max(sizes, default=_TASK_MEMORY)


class CareOperator(NightkeepSparkOperator):
    """One operation over a group of tables, or, if `operation` is blank, whatever their policies ask for.

    Returns one entry per table and operation.
    """

    template_fields = (*NightkeepSparkOperator.template_fields, "operation")

    def __init__(self, *, operation: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.operation = operation

    def execute(self, context: Context) -> list[dict[str, object]]:  # type: ignore[override]
        """Run the job. Raises AirflowException if tries remain and a retry may improve the outcome of a table, and
        AirflowFailException for an operation that no job does."""
        entries = self.submit(_script(self.operation), self.tables, context)
        # A retry only finds the run's own commits again; the next run plans the rest of such a table.
        unpublished = [entry for entry in entries if entry.committed_version is None and not entry.permanent]
        _try_again([entry for entry in unpublished if entry.outcome in RETRIED], context)
        return [as_json(entry) for entry in entries]


class CheckOperator(NightkeepSparkOperator):
    """Reads the documents of the versions that a group's care job published. `cared` is its CareOperator's output.

    If a version has no check, because the care job died before or the check failed to run, the check is done now.
    `cared` is None if care failed for good: then the check itself looks for versions that the run published.
    """

    template_fields = (*NightkeepSparkOperator.template_fields, "cared")

    def __init__(self, *, cared: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cared = cared

    def execute(self, context: Context) -> list[dict[str, object]]:  # type: ignore[override]
        """Raises AirflowSkipException if nothing was published, and AirflowException if a check must be tried again."""
        if self.cared is None:
            self.cared = [as_json(entry) for entry in self.submit(CHECK_JOB, self.tables, context)]
        cared = [reported(entry) for entry in self.cared]
        published = [entry for entry in cared if entry.committed_version is not None]
        if not published:
            raise AirflowSkipException("nothing was published, so there is nothing to check")
        unchecked = dict.fromkeys(entry.table for entry in published if awaits_check(entry))
        if unchecked:
            self.submit(CHECK_JOB, list(unchecked), context)
        _try_again([refresh_result(entry) for entry in published if awaits_check(entry)], context)
        return [as_json(refresh_result(entry)) for entry in published]


def _script(operation: str) -> str:
    """The job script of an operation; of a blank one, the script that does what policies ask for."""
    script = JOBS.get(operation) if operation.strip() else CARE_JOB
    if script is None:
        raise AirflowFailException(f"operation: expected one of {', '.join(JOBS)}, found {operation!r}")
    return script


def _named(tables: Sequence[str]) -> list[str]:
    """A name with a comma is given on its own."""
    apart = [table for table in tables if "," in table]
    together = [table for table in tables if "," not in table]
    return [*(["--tables", ",".join(together)] if together else []), *(f"--table={table}" for table in apart)]


def _try_again(entries: Sequence[JobResult], context: Context) -> None:
    ti = context["ti"]
    if entries and ti.try_number <= ti.max_tries:
        raise AirflowException("to be tried again: " + "; ".join(map(str, entries)))


def driver_environment(environ: Mapping[str, str], jobs: str) -> dict[str, str]:
    """The environment of the job. Its driver runs with PYSPARK_DRIVER_PYTHON, by default this task's interpreter, whose
    folder has spark-submit: Airflow's environment needs no pyspark where another one has it."""
    driver = environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    paths = [os.path.dirname(driver), environ.get("PATH", os.defpath)]
    return {
        "PATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": environ.get("PYSPARK_PYTHON", driver),
        "PYSPARK_DRIVER_PYTHON": driver,
        **_python_path(jobs, "PYTHONPATH", environ.get("PYTHONPATH", "")),
    }


def _python_path(jobs: str, name: str, more: str = "") -> dict[str, str]:
    """The folder of the jobs where it is a clone's, which has the package beside them; the wheel's is installed."""
    beside = [jobs] if Path(jobs, "nightkeep").is_dir() else []
    paths = [*beside, *filter(None, [more])]
    return {name: os.pathsep.join(paths)} if paths else {}
