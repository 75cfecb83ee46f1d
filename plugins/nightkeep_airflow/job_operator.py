"""Tables of one group -> a job, submitted -> its result file, read back. Each try reads only its own result."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from nightkeep.environment import needed_elsewhere
from nightkeep.errors import NightkeepError
from nightkeep.model.version import __version__
from nightkeep.nights.run_tables import found_option, night_option, run_policy
from nightkeep.nights.settled import JobResult, parse
from nightkeep.places import is_address, read_text
from nightkeep.policy import Settings
from nightkeep.records.job_result import JobEnd, read_end
from nightkeep_airflow.job import Job, Submit
from nightkeep_airflow.links import ReportLink
from nightkeep_airflow.nested import execute_within
from nightkeep_airflow.releases import AirflowException, AirflowFailException, AirflowTaskTimeout
from nightkeep_airflow.result_file import result_file, tables_at_death
from nightkeep_airflow.runs import run_prefix

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

# How Airflow's hook reports the exit status of a job that did not understand its policy or its arguments.
_NOT_UNDERSTOOD = "Error code is: 2."

# How many jobs are started one after the other. Each continues behind the tables at which the one before it died: the
# first one may only have found that one of several is deadly.
_JOBS = 5

# The memory of a task if no policy sets it.
_TASK_MEMORY = 2 << 30


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a job knows of the one that died before it: the table that did it, and whether more than one may have."""

    died: str | None = None
    one_by_one: bool = False

    @property
    def options(self) -> list[str]:
        died = [] if self.died is None else [f"--died={self.died}"]
        return [*died, *(["--one-by-one"] if self.one_by_one else [])]


class TablesOperator(BaseOperator):
    """A task over a group of tables, whose job is known.

    `jobs` is the folder of the scripts, or its address, `tables` the group, `options` further arguments of the script,
    of which blank ones are left out.
    """

    template_fields: Sequence[str] = ("tables", "policy", "reports", "options")
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

    @property
    def tables_label(self) -> str:
        """The name of a mapped task and its Spark application: the first table, and the number of the others."""
        first, more = next(iter(self.tables), "no table"), len(self.tables) - 1
        return f"{first} and {more} more" if more > 0 else first

    def job(
        self, script: str, tables: Sequence[str], context: Context, *, result: str, rest: Sequence[str] = ()
    ) -> Job:
        """The job of `script` over `tables` in this task; `rest` are further arguments."""
        run = context["dag_run"]
        prefix = run_prefix(run.dag_id, run.run_id)
        settings = self._settings(tables, prefix)
        return Job(
            script=f"{self.jobs.rstrip('/')}/{script}" if is_address(self.jobs) else str(Path(self.jobs, script)),
            arguments=(*self._arguments(tables, prefix), *rest, "--result", result),
            name=f"nightkeep {run.dag_id} {self.task_id}: {self.tables_label}",
            tables=tuple(tables),
            policy=self.policy,
            reports=self.reports,
            result=result,
            mark=_mark(prefix, self.task_id, context),
            task_memory=max((each.task_memory for each in settings), default=_TASK_MEMORY),
            configuration={name: value for each in settings for name, value in each.spark},
            environment=needed_elsewhere(os.environ),
        )

    def _arguments(self, tables: Sequence[str], prefix: str) -> list[str]:
        return [
            *("--policy", self.policy, "--reports", self.reports, *_named(tables), "--expects", __version__),
            *("--run-id-prefix", prefix, *found_option(self.reports, prefix)),
            *night_option(self.reports, prefix),
            *(option for option in self.options if option.strip()),
        ]

    def _settings(self, tables: Sequence[str], prefix: str) -> list[Settings]:
        """Those of each table. A table without a valid policy is reported by the job."""
        found = list[Settings]()
        with suppress(NightkeepError, OSError):
            policy = run_policy(self.policy, self.reports, prefix)
            for table in tables:
                with suppress(NightkeepError):
                    found.append(policy.effective(table).settings)
        return found


class JobOperator(TablesOperator):
    """Submits one job script for a group of tables, and reads back what it reports.

    `submit` is the way to submit a job; by default that is spark-submit, whose operator takes the further arguments
    (`conn_id`, `conf`, `archives` and so on). Whatever the job publishes is safe to submit again under the same run.
    """

    template_fields: Sequence[str] = (*TablesOperator.template_fields, "spark")

    def __init__(self, *, submit: Submit | None = None, **kwargs: Any) -> None:
        known = _spark_options() if submit is None else frozenset()
        defaults: Mapping[str, Any] = kwargs.get("default_args") or {}
        self.spark = {name: value for name, value in defaults.items() if name in known}
        self.spark |= {name: kwargs.pop(name) for name in sorted(known & kwargs.keys())}
        super().__init__(**kwargs)
        self._submit = submit
        self._submitted: BaseOperator | None = None
        self._killed = False

    def submit(self, script: str, tables: Sequence[str], context: Context) -> tuple[JobResult, ...]:
        """Run `script` over `tables` and return its result. The job has ended then.

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

    def on_kill(self) -> None:
        """End the job that was submitted."""
        self._killed = True
        if self._submitted is not None:
            self._submitted.on_kill()

    def _submit_once(
        self, script: str, tables: Sequence[str], context: Context, *, rest: _Rest, last: bool
    ) -> tuple[tuple[JobResult, ...], tuple[str, ...]]:
        """The results of a job, and the tables at which it died, if another job can continue behind it."""
        with result_file(self.reports) as result:
            at = tuple[str, ...]()
            job = self.job(script, tables, context, result=result, rest=rest.options)
            try:
                self._run(job, context)
            except (AirflowFailException, AirflowTaskTimeout):
                raise
            except AirflowException as failure:
                at = tables_at_death(result)
                if not self._has_ended(result, failure):
                    if last or self._killed or at == (rest.died,) or not at or not set(at) <= set(tables):
                        raise
                    self.log.warning("the job died at %s; another one goes on: %s", ", ".join(at), failure)
            text = read_text(result)
            if text is None:
                raise AirflowException(f"{script}: expected a result file of a job that ended well, found none")
            entries = parse(text)
            self._note_versions(entries)
            return entries, at

    def _run(self, job: Job, context: Context) -> None:
        """Submit the job. Raises AirflowException for one that did not end well, also where its submission did: a
        cluster may report a driver that it lost as ended."""
        self._submitted = (self._submit or self._spark_submit())(job)
        execute_within(self._submitted, context)
        if (at := tables_at_death(job.result)) and _end_of(job.result) is None:
            raise AirflowException(f"the job was at work on {', '.join(at)}, and was ended by something else")

    def _spark_submit(self) -> Submit:
        from nightkeep_airflow.spark_submit import SparkSubmit  # noqa: PLC0415 -- the Spark provider

        return SparkSubmit(self.jobs, self.spark)

    def _has_ended(self, result: str, failure: AirflowException) -> bool:
        """Whether the job had done its work all the same. A cluster may lose the driver's exit status, and a failed
        submission may hide it. Raises AirflowFailException where a retry would fail too."""
        end = _end_of(result)
        if end is not None and end.is_usage:
            raise AirflowFailException(f"the job did not start: {end.reason}") from failure
        if end is None and _NOT_UNDERSTOOD in str(failure):
            why = "the job did not understand its policy, its arguments or the version of this task; its log names it"
            raise AirflowFailException(f"{why}: {failure}") from failure
        if end is not None and end.status == 0:
            self.log.warning("the job did all its work, and its submission failed afterwards: %s", failure)
            return True
        return False

    def _note_versions(self, entries: Sequence[JobResult]) -> None:
        """Log where a job has another version of Nightkeep than this task, which it has accepted."""
        other = sorted({entry.nightkeep for entry in entries} - {"", __version__})
        if other:
            self.log.warning("this task has Nightkeep %s, the job has %s", __version__, ", ".join(other))


def _named(tables: Sequence[str]) -> list[str]:
    """A name with a comma is given on its own."""
    apart = [table for table in tables if "," in table]
    together = [table for table in tables if "," not in table]
    return [*(["--tables", ",".join(together)] if together else []), *(f"--table={table}" for table in apart)]


def _end_of(result: str) -> JobEnd | None:
    with suppress(OSError):
        return read_end(result)
    return None


def _mark(prefix: str, task_id: str, context: Context) -> str:
    """The same in every try of a task, and in no other task."""
    map_index = getattr(context.get("ti"), "map_index", -1)
    return hashlib.sha256(f"{prefix}\n{task_id}\n{map_index}".encode()).hexdigest()[:32]


@lru_cache(maxsize=1)
def _spark_options() -> frozenset[str]:
    from nightkeep_airflow.spark_submit import OPTIONS  # noqa: PLC0415 -- the Spark provider

    return OPTIONS
