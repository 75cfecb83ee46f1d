"""Operators over the tables of one group: care, whether it is checked, and the check of what is not.

A care job checks what it publishes. A CheckOperator starts Spark only for published versions without a check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nightkeep.model import Outcome
from nightkeep.nights.settled import JobResult, as_json, awaits_check, refresh_result, reported, settle_results
from nightkeep_airflow.assets import VERIFIED, emit
from nightkeep_airflow.job_operator import JobOperator, TablesOperator
from nightkeep_airflow.releases import AirflowException, AirflowSkipException, DownstreamTasksSkipped

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

CARE_JOB, SWEEP_JOB, CHECK_JOB, AUDIT_JOB = "care.py", "sweep_orphans.py", "check.py", "audit.py"
ENTRIES: Final = "entries"
"""The key under which a task passes on entries that does not return them."""

# Outcomes that a retry may improve: a lost race is planned again, and a failure may be the machine's.
RETRIED = frozenset({Outcome.CONFLICTED, Outcome.FAILED})


class CareOperator(JobOperator):
    """What `script` does over a group of tables. Returns one entry per table and operation."""

    def __init__(self, *, script: str = CARE_JOB, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.script = script

    def execute(self, context: Context) -> list[dict[str, object]]:
        """Run the job. Raises AirflowException if tries remain and a retry may improve the outcome of a table."""
        entries = self.submit(self.script, self.tables, context)
        # A retry only finds the run's own commits again; the next run plans the rest of such a table.
        unpublished = [entry for entry in entries if entry.committed_version is None and not entry.permanent]
        _try_again([entry for entry in unpublished if entry.outcome in RETRIED], context)
        return [as_json(entry) for entry in entries]


class CheckedOperator(TablesOperator):
    """Whether what a group's care job published is checked.

    Where it is, the check is skipped, and waits for no slot of the pool of Spark jobs. `cared` is its CareOperator's
    output, None where care failed for good.
    """

    template_fields: Sequence[str] = (*TablesOperator.template_fields, "cared")

    def __init__(self, *, cared: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cared = cared

    def execute(self, context: Context) -> None:
        """Passes on entries with the outcomes of the documents, under the key `ENTRIES`."""
        if self.cared is None:
            return
        cared = [reported(entry) for entry in self.cared]
        if any(entry.committed_version is not None and awaits_check(entry) for entry in cared):
            return
        ti, behind = context["ti"], self.get_direct_relatives()
        ti.xcom_push(key=ENTRIES, value=_settled_entries(self, cared, context))
        # Not by Airflow's SkipMixin: what it notes is not found in a mapped group (NotPreviouslySkippedDep).
        skipped = [(task.task_id, ti.map_index) for task in behind]
        raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]


class CheckOperator(JobOperator):
    """Reads the documents of the versions that a group's care job published. `cared` is its CareOperator's output.

    If a version has no check, because the care job died before or the check failed to run, the check is done now.
    `cared` is None if care failed for good: then the check itself looks for versions that the run published. `behind`:
    the CheckedOperator of the group.
    """

    template_fields = (*JobOperator.template_fields, "cared")

    def __init__(self, *, cared: Any, behind: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cared = cared
        self.behind = behind

    def execute(self, context: Context) -> list[dict[str, object]]:
        """Raises AirflowSkipException if nothing is left to check, and AirflowException if a check must be tried
        again."""
        if self.behind is not None and _passed_on(self.behind, context):
            raise AirflowSkipException("all that was published is checked")
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
        return _settled_entries(self, cared, context)


def _passed_on(task_id: str, context: Context) -> bool:
    """Whether a CheckedOperator of this group has settled it."""
    ti = context["ti"]
    return ti.xcom_pull(task_ids=task_id, key=ENTRIES, map_indexes=ti.map_index) is not None


def _settled_entries(operator: TablesOperator, cared: Sequence[JobResult], context: Context) -> list[dict[str, object]]:
    """The published entries as their documents have them now. Emits the assets of the group's verified tables: nobody
    waits for other groups."""
    checked = [refresh_result(entry) for entry in cared if entry.committed_version is not None]
    entries = [*cared, *checked]
    settled = settle_results(list(dict.fromkeys(entry.table for entry in entries)), entries)
    shown = [result for result in settled if result.published and VERIFIED in operator.outlets]
    verified = [result for result in shown if result.outcome is Outcome.VERIFIED]
    for result in verified:
        emit(context["outlet_events"], result.table, result.documents)
    emitted = {result.table for result in verified}
    return [as_json(replace(entry, emitted=entry.table in emitted)) for entry in checked]


def _try_again(entries: Sequence[JobResult], context: Context) -> None:
    ti = context["ti"]
    if entries and ti.try_number <= ti.max_tries:
        raise AirflowException("to be tried again: " + "; ".join(map(str, entries)))
