"""Groups of tables -> care -> check -> one outcome per table, and a page. Every DAG is this chain.

                                 per group (mapped)                    per table (mapped)
    in_time -> groups -> look -> [ care -> checked -> check ] -> settle -> outcome
                                                                       `-> unchanged
                                                                       `-> page
                                                                       `-> notify -> notified
    in_time -> groups ---------> [          sweep           ] -> settle -> swept
                                                                       `-> page
                                                                       `-> notify -> notified
    in_time -> groups ---------> [          audit           ] -> settle -> audited
                                                                       `-> unchanged
                                                                       `-> page
                                                                       `-> notify -> notified

`look` takes no slot of the pool of Spark jobs: it plans all tables in one process, and ends those that need no session.
Of the others, each group is a session. Tables with nothing to do have one task together.

The care job checks what it publishes, in the session that published it, so that a group's night is one session.
`checked` reads the documents, without a slot of the pool. Where every published version was checked, `check` is
skipped: it starts Spark for a version without a check, which the care job left behind when it died or when the check
broke. Where care failed for good it runs all the same, and looks for what that care published.

A scheduled run that starts hours late ends after `in_time`, all else skipped. What is known of a table is one entry
of a list that `settle` returns in chunks, as Airflow maps over 1,024 values of one task and no more: each table is
a chunk and a place in it.

Who retries what. An outcome is settled by the job that did the work, so nothing downstream can mend it by
running again: retries belong to `care`. While tries remain, a CareOperator whose result has a `conflicted` or
`failed` table raises, and Airflow submits the group again under the same run ids, where a table that is
finished is recognised by its own commit and costs little. On the last try it returns what there is, so
that the group's other tables are still settled. `check` is what tries a broken check again, for it needs no care.
`settle` goes by the documents, in which a published version without a check counts as failed: by those of which a task
returned the addresses, and by whatever else the run has stored of its tables, as a task that runs out of tries returns
nothing. A table without any document gets one then, so that page, tasks and `nightkeep history` agree. `outcome` shows
what was settled: refused and skipped as skipped, verified and unchanged as success, the rest as failed at once; its own
retries are for its own troubles, such as a database that did not answer.

A form (`dags.on_demand`) is the chain of a night for a group of one. Of the rows that a delete or an update changes, a
check follows as of any version. A sweep, an expiry and a restore publish nothing, so that there is nothing to check
behind their job, and a release touches no table.

A sweep publishes nothing that another session could check: its job looks itself whether everything that is retained is
still there, before it reports how it went. So there is no `check` behind it, and no asset: whoever waits for a table
waits for other rows or other files of a version, and a sweep is done when neither has changed.

The DAG run fails when one table's outcome does. `settle` runs whatever became of the groups, and `page` comes
after it but not after the outcomes, so it is always written and never turns a failed run green. `notify` sends messages
to the receivers of the policy. A try that comes again sends nothing twice (`nightkeep.records.sent_marks`).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TriggerRule, XComArg, task, task_group

from nightkeep.errors import NightkeepError
from nightkeep.model import Operation, Outcome
from nightkeep.nights.kept_reports import remove_old_reports
from nightkeep.nights.messages_of_run import heard_results
from nightkeep.nights.run_pages import RunPage, store_missing, write_run
from nightkeep.nights.run_tables import RunOrder, find_all, order_all, run_policy
from nightkeep.nights.settled import Settled, SettledEntry, as_json, reported, settle_run, settled_result
from nightkeep.nights.settled_documents import documents_of
from nightkeep.policy import groups as groups_of
from nightkeep.records.failure_outcomes import unreported_as_failed
from nightkeep_airflow import figures, lineage
from nightkeep_airflow.admission import require_known, too_late
from nightkeep_airflow.assets import VERIFIED, emit
from nightkeep_airflow.links import report_url
from nightkeep_airflow.look import LookOperator
from nightkeep_airflow.needs import Needs
from nightkeep_airflow.notices import notify_of_tables
from nightkeep_airflow.operators import ENTRIES, CareOperator, CheckedOperator, CheckOperator
from nightkeep_airflow.pool_listener import given_parameters, missing_of
from nightkeep_airflow.readiness import require_ready
from nightkeep_airflow.releases import AirflowFailException, AirflowSkipException, conf
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import PluginSettings

T = TypeVar("T")

_log = logging.getLogger(__name__)


LOOK, _CHECKED = "look", "group.checked"
RETURNED = "return_value"
"""Airflow's key of what a task returns."""
TABLE = "{{ task.op_kwargs.results[task.op_kwargs.place].table }}"

RAISED = {
    Outcome.REFUSED: AirflowSkipException,
    Outcome.SKIPPED: AirflowSkipException,
    Outcome.CONFLICTED: AirflowFailException,
    Outcome.MISMATCH: AirflowFailException,
    Outcome.FAILED: AirflowFailException,
}


def care_for(groups: XComArg, settings: PluginSettings, *, operation: str = "", options: Iterable[str] = ()) -> None:
    """The chain of this module behind `groups`, a task that returns lists of table names.

    A blank `operation`, which names the operation of the run for its page, is what each table's policy asks for.
    `operation` and `options`, those of the job, may be templates; an option that renders blank is left out.
    """
    submit = submit_options(settings)
    asked: dict[str, Any] = {"options": [*options]}
    left, looked = groups, list[str]()
    if settings.looks:
        look = LookOperator(task_id=LOOK, groups=groups, **asked, **_places(settings))
        left, looked = look.output, [LOOK]

    @task_group(group_id="group")
    def each(tables: Sequence[str]) -> None:
        care = CareOperator(task_id="care", tables=tables, **asked, **submit)
        # Not only after success: what a care published that then failed for good is to be checked as well.
        later: dict[str, Any] = {"tables": tables, "cared": care.output, "trigger_rule": TriggerRule.ALL_DONE}
        checked = CheckedOperator(task_id="checked", outlets=[VERIFIED], **later, **_places(settings))
        checked >> CheckOperator(task_id="check", behind=_CHECKED, outlets=[VERIFIED], **later, **submit)

    tasks = [*looked, "group.care", _CHECKED, "group.check"]
    results = settle(groups, tasks, settings.policy, settings.reports, operation=operation)
    each.expand(tables=left) >> results
    outcome.expand(results=results, place=places(results))
    unchanged(results)
    page(results, settings.policy, settings.reports, operation=operation)
    send(results, settings)


def submit_options(settings: PluginSettings) -> dict[str, Any]:
    cores = {} if "submit" in settings.submitting else {"total_executor_cores": settings.cores}
    return {**cores, **settings.submitting, "map_index_template": "{{ task.tables_label }}", **_places(settings)}


def _places(settings: PluginSettings) -> dict[str, Any]:
    return {
        "execution_timeout": settings.task_timeout,
        "jobs": settings.jobs,
        "policy": settings.policy,
        "reports": settings.reports,
    }


def scheduled_groups(settings: PluginSettings, order: RunOrder = RunOrder.NIGHT) -> XComArg:
    """Groups of all tables, for a run that starts in time."""
    groups = policy_groups(settings.policy, settings.reports, order=order.value)
    in_time(settings.start_within.total_seconds(), needs=settings.needs.to_json()) >> groups
    return groups


# Whatever their trigger rules are, all tasks behind it are skipped.
@task.short_circuit(ignore_downstream_trigger_rules=True)
def in_time(within_seconds: float, *, needs: Mapping[str, str], dag_run: Any = None, dag: Any = None) -> bool:
    """False for a scheduled run that starts late. Raises AirflowFailException for parameters the DAG does not know, and
    where something is missing without which each task behind it would fail."""
    require_known(given_parameters(dag_run), [*dag.params])
    within = timedelta(seconds=within_seconds)
    late = too_late(dag_run, now=datetime.now(UTC), within=within)
    if late:
        _log.warning("%s", late)
        return False
    require_ready(Needs.from_json(needs), missing=missing_of(dag_run))
    return True


@task(retries=0)
def policy_groups(
    policy: str, reports: str, *, order: str = RunOrder.FILE.value, dag_run: Any = None
) -> list[list[str]]:
    """Tables that share a Spark session, from the policy and what it discovers when the run starts; larger where they
    are many."""
    prefix = run_prefix(dag_run.dag_id, dag_run.run_id)
    loaded = order_all(find_all(policy, reports, prefix), reports, prefix, RunOrder(order))
    groups, tables = groups_of(loaded), len(loaded.tables)
    size = max(map(len, groups), default=0)
    while len(groups) > _most_mapped() and size < tables:
        size *= 2
        groups = groups_of(loaded, size)
    return [list(group) for group in groups]


# Not ALL_DONE_MIN_ONE_SUCCESS: that rule skips once an upstream task was skipped, and skipped runs are green.
@task(trigger_rule=TriggerRule.ALL_DONE)
def settle(
    groups: Any,
    task_ids: list[str],
    policy: str,
    reports: str,
    *,
    operation: str | None = None,
    ti: Any = None,
    dag_run: Any = None,
) -> list[list[dict[str, object]]]:
    """Chunks of one entry per table, whatever became of its group's tasks. Of a table for which `task_ids` returned
    nothing, the documents count that the run stored; one without any gets its document here.

    The pull names tasks in a list: of a mapped task's XCom argument, one value and many are not distinguished. What a
    later one of `task_ids` returned for a table's operation counts.
    """
    if groups is None:
        raise AirflowFailException("the list of tables is missing; see the first task of the run")
    tables = [table for group in groups for table in group]
    returned = [group for task_id in task_ids for group in ti.xcom_pull(task_ids=[task_id], key=_key_of(task_id))]
    entries = [reported(entry) for group in returned if group for entry in group]
    run = _run_page(dag_run, operation)
    settled = settle_run(reports, run.prefix, tables, entries)
    if not all(result.documents for result in settled):
        settled = _stored(settled, run, policy, reports)
    return chunks([as_json(result) for result in settled], _most_mapped())


def _key_of(task_id: str) -> str:
    return ENTRIES if task_id in (LOOK, _CHECKED) else RETURNED


def _stored(settled: list[Settled], run: RunPage, policy: str, reports: str) -> list[Settled]:
    """The results, those without a document with one. A policy that cannot be read now does not hinder the others."""
    try:
        loaded = run_policy(policy, reports, run.prefix)
    except (NightkeepError, OSError) as failure:
        _log.warning("tables without a document get none: %s", failure)
        return settled
    return store_missing(reports, run, settled, loaded)


def _run_page(dag_run: Any, operation: str | None) -> RunPage:
    return RunPage(
        prefix=run_prefix(dag_run.dag_id, dag_run.run_id),
        title=f"{dag_run.dag_id}, {dag_run.run_after:%Y-%m-%d %H:%M}",
        now=datetime.now(UTC),
        operation=Operation(operation) if operation else None,
    )


@task
def places(results: Any) -> list[int]:
    """Places in the longest chunk at which a table needs a task of its own, as it is not unchanged."""
    longest = max(map(len, results), default=0)
    return [place for place in range(longest) if any(map(_is_changed, at_place(results, place)))]


@task
def unchanged(results: Any) -> str:
    """One task for all tables with nothing to do; skipped where there is none."""
    tables = [str(entry["table"]) for chunk in results for entry in chunk if not _is_changed(entry)]
    if not tables:
        raise AirflowSkipException("no table of this run is unchanged")
    _log.info("unchanged: %s", ", ".join(tables))
    return f"{len(tables)} unchanged"


def at_place(results: Sequence[Sequence[SettledEntry]], place: int) -> list[SettledEntry]:
    return [chunk[place] for chunk in results if place < len(chunk)]


def _is_changed(entry: SettledEntry) -> bool:
    return entry["outcome"] != Outcome.UNCHANGED.value


@task(outlets=[VERIFIED], map_index_template=TABLE)
def outcome(results: Sequence[SettledEntry], place: int, *, outlet_events: Any = None) -> str:
    """Ends as the table's outcome does; emits the table's asset for a verified commit, unless its group has done so."""
    result = unless_raised(results, place)
    if result.published and result.outcome is Outcome.VERIFIED and not result.emitted:
        emit(outlet_events, result.table, result.documents)
    return str(result)


def chunks(entries: list[T], most: int) -> list[list[T]]:
    """The entries in order, in the fewest chunks of at most `most` entries, as even as possible."""
    count = -(-len(entries) // most)
    cuts = [len(entries) * i // count for i in range(count + 1)] if count else []
    return [entries[start:end] for start, end in itertools.pairwise(cuts)]


def _most_mapped() -> int:
    return max(1, int(conf.getint("core", "max_map_length", fallback=1024)))


def unless_raised(results: Sequence[SettledEntry], place: int) -> Settled:
    if place >= len(results):
        raise AirflowSkipException("no table: this chunk is shorter than another one")
    result = settled_result(results[place])
    if result.outcome in RAISED:
        raise RAISED[result.outcome](str(result))
    return result


@task
def page(results: Any, policy: str, reports: str, *, operation: str | None = None, dag_run: Any = None) -> str:
    """Write the run's page and the index over all runs; the address of the page. Once a day, what the policy keeps no
    longer is removed."""
    run = _run_page(dag_run, operation)
    loaded = run_policy(policy, reports, run.prefix)
    settled = [settled_result(result) for chunk in results for result in chunk]
    written = write_run(reports, run, settled, policy=loaded)
    _log.info("The report of this run is %s", written)
    if removed := remove_old_reports(loaded, reports, run.now):
        _log.info(removed)
    return written


def send(results: XComArg, settings: PluginSettings) -> None:
    """`notify` behind `results`, whose failure fails no run: the run goes by `notified`, which comes after it.

    A teardown would do the same for less, but Airflow does not set the state of a run that a user marks as failed while
    a teardown is still to come, and shows the run as a success then.
    """
    notified = EmptyOperator(task_id="notified", trigger_rule=TriggerRule.ALL_DONE)
    notify(results, settings.policy, settings.reports) >> notified


@task(retries=1, retry_delay=timedelta(seconds=10))
def notify(results: Any, policy: str, reports: str, *, dag_run: Any = None) -> None:
    """Emit the figures of the run and what it published, and send messages about the tables to whom the policy names.
    A receiver that is dead is a line in the log."""
    prefix = run_prefix(dag_run.dag_id, dag_run.run_id)
    loaded = run_policy(policy, reports, prefix)
    settled = [settled_result(result) for chunk in results for result in chunk]
    emits, traced = figures.are_on(), lineage.is_on()
    stored = documents_of(settled if emits or traced else heard_results(loaded, settled), reports, prefix)
    documents = {address: unreported_as_failed(document) for address, document in stored.items()}
    if traced:
        lineage.emit_lineage([*documents.values()])
    if emits:
        figures.emit_figures(dag_run.dag_id, settled, documents.values(), reports)
    notify_of_tables(
        loaded, settled, documents, reports=reports, prefix=prefix, link=report_url(dag_run.dag_id, dag_run.run_id)
    )
