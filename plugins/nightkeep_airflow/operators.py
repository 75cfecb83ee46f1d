"""Tables of one group -> spark-submit -> result file -> XCom. Each try reads only its own result.

A care job checks what it publishes, so a CheckOperator starts Spark for what has no check yet, and for nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from nightkeep.model import Operation, Outcome
from nightkeep_airflow.links import ReportLink
from nightkeep_airflow.results import Reported, as_json, awaits_check, parse, reported, retold
from nightkeep_airflow.runs import run_prefix

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

    def submit(self, script: str, tables: Sequence[str], context: Context) -> tuple[Reported, ...]:
        """Run `script` over `tables` and return its result. Raises AirflowException where it wrote none."""
        with TemporaryDirectory(prefix="nightkeep-") as folder:
            result = Path(folder) / "result.json"
            self._prepare(script, [*self._arguments(tables, context), "--result", str(result)])
            super().execute(context)
            if not result.exists():
                raise AirflowException(f"{script}: expected a result file at exit status 0, found none")
            entries = parse(result.read_text(encoding="utf-8"))
        for entry in entries:
            self.log.info("%s", entry)
        return entries

    def on_kill(self) -> None:
        """End spark-submit, its JVM and the driver's Python; SIGTERM first, so Spark removes its folders."""
        family = _family(self._hook._submit_sp) if self._hook else []
        for process in family:
            _signal(process.terminate)
        _, alive = psutil.wait_procs(family, timeout=_GRACE_SECONDS)
        for process in alive:
            _signal(process.kill)
        psutil.wait_procs(alive, timeout=1)
        if self._hook:
            super().on_kill()

    def _prepare(self, script: str, arguments: list[str]) -> None:
        self.application = str(Path(self.jobs) / script)
        self.application_args = arguments
        self.conf = {
            "spark.log.level": "WARN",
            "spark.executorEnv.PYTHONPATH": self.jobs,
            **(self.conf or {}),
        }
        self.env_vars = {**_environment(os.environ, self.jobs), **(self.env_vars or {})}

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
        unpublished = [entry for entry in entries if entry.committed_version is None]
        _try_again([entry for entry in unpublished if entry.outcome in RETRIED], context)
        return [as_json(entry) for entry in entries]


class CheckOperator(NightkeepSparkOperator):
    """A look at the documents of what a group's care published; `cared` is its CareOperator's output.

    Where a published version has no check, because the care job died before it or the check broke, it is done now.
    """

    template_fields = (*NightkeepSparkOperator.template_fields, "cared")

    def __init__(self, *, cared: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cared = cared

    def execute(self, context: Context) -> list[dict[str, object]]:  # type: ignore[override]
        """Raises AirflowSkipException where nothing was published, AirflowException to have a check tried again."""
        cared = [reported(entry) for entry in self.cared]
        published = [entry for entry in cared if entry.committed_version is not None]
        if not published:
            raise AirflowSkipException("nothing was published, so there is nothing to check")
        unchecked = dict.fromkeys(entry.table for entry in published if awaits_check(entry))
        if unchecked:
            self.submit(CHECK_JOB, list(unchecked), context)
        _try_again([retold(entry) for entry in published if awaits_check(entry)], context)
        return [as_json(retold(entry)) for entry in published]


def _named(tables: Sequence[str]) -> list[str]:
    """A name with a comma is given on its own."""
    apart = [table for table in tables if "," in table]
    together = [table for table in tables if "," not in table]
    return [*(["--tables", ",".join(together)] if together else []), *(f"--table={table}" for table in apart)]


def _try_again(entries: Sequence[Reported], context: Context) -> None:
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


def _family(submitted: Any) -> list[psutil.Process]:
    """spark-submit and everything below it, the launcher first; nothing where it has ended."""
    if submitted is None or submitted.poll() is not None:
        return []
    launcher = psutil.Process(submitted.pid)
    return [launcher, *launcher.children(recursive=True)]


def _signal(send: Callable[[], object]) -> None:
    """A process may end by itself between the listing and the signal."""
    try:
        send()
    except psutil.NoSuchProcess:
        return
