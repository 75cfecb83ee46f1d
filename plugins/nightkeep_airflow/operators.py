"""Tables of one group -> spark-submit -> result file -> XCom. Each try reads only its own result.

A care job checks what it publishes, so a CheckOperator starts Spark for what has no check yet, and for nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from nightkeep.errors import NightkeepError
from nightkeep.model import Operation, Outcome
from nightkeep.policy import load_usable
from nightkeep.redaction import redact
from nightkeep.spark.settings import driver_memory, said_by_file
from nightkeep_airflow.links import ReportLink
from nightkeep_airflow.results import JobResult, as_json, awaits_check, parse, refresh_result, reported
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.submitted import MARK, end

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

JOBS = {
    Operation.UPGRADE: "l0_upgrade.py",
    Operation.PERSIST_DELETES: "persist_deletes.py",
    Operation.OPTIMIZE: "optimize.py",
    Operation.SWEEP: "sweep_orphans.py",
}
CARE_JOB, CHECK_JOB = "care.py", "check.py"

# What a later try can mend: a lost race is planned again, a failure may have been the machine's.
RETRIED = frozenset({Outcome.CONFLICTED, Outcome.FAILED})

# The exit status of a job that did not understand its policy or its arguments, as Airflow's hook tells it.
_NOT_UNDERSTOOD = "Error code is: 2."

# Jobs that are started one behind another, each at the table at which the one before it died.
_JOBS = 4

# Of a task, where no policy says.
_TASK_MEMORY = 2 << 30

# Airflow sends SIGKILL five seconds after SIGTERM: what ends Spark has to be done by then.
_GRACE_SECONDS = 3


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
        """What a mapped task and its Spark application are called by: the first table, and how many more."""
        first, more = next(iter(self.tables), "no table"), len(self.tables) - 1
        return f"{first} and {more} more" if more > 0 else first

    def submit(self, script: str, tables: Sequence[str], context: Context) -> tuple[JobResult, ...]:
        """Run `script` over `tables` and return its result; whatever it started has ended then.

        Where a job dies at a table, another one tells of that as failed and does the rest. Raises AirflowException
        where too many die, or one wrote no result, AirflowFailException where it could not be understood: another try
        would not be either.
        """
        results: tuple[JobResult, ...] = ()
        left, died = list(tables), None
        for more in reversed(range(_JOBS)):
            entries, at = self._submit_once(script, left, context, died=died, last=not more)
            # Of the table at which it died the next job tells all.
            results += tuple(entry for entry in entries if entry.table != at)
            if at is None:
                break
            left, died = left[left.index(at) :], at
        for entry in results:
            self.log.info("%s", entry)
        return results

    def _submit_once(
        self, script: str, tables: Sequence[str], context: Context, *, died: str | None, last: bool
    ) -> tuple[tuple[JobResult, ...], str | None]:
        """What a job told, and the table at which it died, if another one can go on behind that."""
        with TemporaryDirectory(prefix="nightkeep-") as folder:
            result, at = Path(folder) / "result.json", None
            run = context["dag_run"]
            self.name = f"nightkeep {run.dag_id} {self.task_id}: {self.tables_label}"
            arguments = [*self._arguments(tables, context), *([] if died is None else [f"--died={died}"])]
            self._prepare(script, [*arguments, "--result", str(result)], tables)
            try:
                self._submitted(context)
            except (AirflowFailException, AirflowTaskTimeout):
                raise
            except AirflowException as failure:
                at = _at_hand(result)
                if last or self._killed or at == died or at not in tables:
                    raise
                self.log.warning("the job died at %s; another one goes on behind it: %s", at, failure)
            if not result.exists():
                raise AirflowException(f"{script}: expected a result file at exit status 0, found none")
            return parse(result.read_text(encoding="utf-8")), at

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
                raise AirflowFailException(str(failure)) from failure
            raise
        finally:
            # A driver may outlive its JVM; after a timeout too, where Airflow calls `on_kill` next.
            end(self._mark, grace_seconds=_GRACE_SECONDS)

    def _prepare(self, script: str, arguments: list[str], tables: Sequence[str]) -> None:
        self.application = str(Path(self.jobs) / script)
        self.application_args = arguments
        self.conf = {"spark.executorEnv.PYTHONPATH": self.jobs, **(self.conf or {})}
        self._mark = uuid4().hex
        # The provider's operator keeps its first hook, which holds the command of that submit.
        self._hook = None
        self.env_vars = {**_environment(os.environ, self.jobs), **(self.env_vars or {}), MARK: self._mark}
        said = {**said_by_file({**os.environ, **self.env_vars}), **self.conf}
        master = str(self._get_hook()._connection["master"])
        # Both are in the command, which the hook logs.
        _require_no_secret(f"connection {self._conn_id}: the host", master)
        for table in tables:
            _require_no_secret("an address of a table", table)
        # The one size that a session cannot ask for: its JVM runs by then. What the deployment says stands.
        if self._driver_memory is None and "spark.driver.memory" not in said:
            self._driver_memory = driver_memory(master, _task_memory(self.policy, tables))

    def _arguments(self, tables: Sequence[str], context: Context) -> list[str]:
        run = context["dag_run"]
        return [
            *("--policy", self.policy, "--reports", self.reports, *_named(tables)),
            *("--run-id-prefix", run_prefix(run.dag_id, run.run_id)),
            *(option for option in self.options if option.strip()),
        ]


class CareOperator(NightkeepSparkOperator):
    """One operation over a group of tables, or, if `operation` is blank, whatever their policies ask for.

    Returns one entry per table and operation.
    """

    template_fields = (*NightkeepSparkOperator.template_fields, "operation")

    def __init__(self, *, operation: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.operation = operation

    def execute(self, context: Context) -> list[dict[str, object]]:  # type: ignore[override]
        """Raises AirflowException while tries remain and a table is worth another one."""
        script = JOBS[Operation(self.operation)] if self.operation.strip() else CARE_JOB
        entries = self.submit(script, self.tables, context)
        # What a run has published it finds again: only the next run plans the rest of that table.
        unpublished = [entry for entry in entries if entry.committed_version is None and not entry.permanent]
        _try_again([entry for entry in unpublished if entry.outcome in RETRIED], context)
        return [as_json(entry) for entry in entries]


class CheckOperator(NightkeepSparkOperator):
    """A look at the documents of what a group's care published; `cared` is its CareOperator's output.

    Where a published version has no check, because the care job died before it or the check broke, it is done now.
    `cared` is None where care failed for good: then the check looks itself for what the run published.
    """

    template_fields = (*NightkeepSparkOperator.template_fields, "cared")

    def __init__(self, *, cared: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cared = cared

    def execute(self, context: Context) -> list[dict[str, object]]:  # type: ignore[override]
        """Raises AirflowSkipException where nothing was published, AirflowException to have a check tried again."""
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


def _at_hand(result: Path) -> str | None:
    """The table that a job was at work on when it died, None where it was not."""
    with suppress(OSError):
        return result.with_name(f"{result.name}.hand").read_text(encoding="utf-8")
    return None


def _named(tables: Sequence[str]) -> list[str]:
    """A name with a comma is given on its own."""
    apart = [table for table in tables if "," in table]
    together = [table for table in tables if "," not in table]
    return [*(["--tables", ",".join(together)] if together else []), *(f"--table={table}" for table in apart)]


def _require_no_secret(subject: str, text: str) -> None:
    if redact(text) != text:
        raise AirflowFailException(f"{subject}: expected no credentials in it, found {redact(text)}")


def _try_again(entries: Sequence[JobResult], context: Context) -> None:
    ti = context["ti"]
    if entries and ti.try_number <= ti.max_tries:
        raise AirflowException("to be tried again: " + "; ".join(map(str, entries)))


def _environment(environ: Mapping[str, str], jobs: str) -> dict[str, str]:
    """The interpreter that runs this task also runs the driver, and its folder has spark-submit."""
    paths = [os.path.dirname(sys.executable), environ.get("PATH", os.defpath)]
    return {
        "PATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [jobs, environ.get("PYTHONPATH", "")])),
    }


def _task_memory(policy: str, tables: Sequence[str]) -> int:
    """What the largest task of these tables may take; a table that is not understood is the job's to tell."""
    sizes = []
    for table in tables:
        with suppress(NightkeepError, OSError):
            sizes.append(load_usable(policy).effective(table).settings.task_memory)
    return max(sizes, default=_TASK_MEMORY)
