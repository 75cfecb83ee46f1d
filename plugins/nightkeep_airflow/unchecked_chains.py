"""Groups of tables -> sweep or audit -> one outcome per table, and a page: chains that no check follows.

A sweep looks itself whether everything that is retained is still there, and an audit publishes nothing. So neither has
a check or an asset. What the tasks do that all chains share is in `nightkeep_airflow.tasks`.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import XComArg, task, task_group

from nightkeep.model import Operation
from nightkeep.nights.settled import SettledEntry
from nightkeep_airflow.operators import AUDIT_JOB, SWEEP_JOB, CareOperator
from nightkeep_airflow.settings import PluginSettings
from nightkeep_airflow.tasks import TABLE, page, places, send, settle, submit_options, unchanged, unless_raised


def sweep_for(groups: XComArg, settings: PluginSettings) -> None:
    """Expire and sweep behind `groups`, a task that returns lists of table names, by each table's policy."""

    @task_group(group_id="group")
    def each(tables: Sequence[str]) -> None:
        CareOperator(task_id="sweep", tables=tables, script=SWEEP_JOB, **submit_options(settings))

    results = settle(groups, ["group.sweep"], settings.policy, settings.reports, operation=Operation.SWEEP.value)
    each.expand(tables=groups) >> results
    swept.expand(results=results, place=places(results))
    unchanged(results)
    page(results, settings.policy, settings.reports, operation=Operation.SWEEP.value)
    send(results, settings)


def audit_for(groups: XComArg, settings: PluginSettings) -> None:
    """Audit what others committed behind `groups`, a task that returns lists of table names. Reads only: an audit
    publishes nothing, so that no check follows and no asset is emitted."""

    @task_group(group_id="group")
    def each(tables: Sequence[str]) -> None:
        CareOperator(task_id="audit", tables=tables, script=AUDIT_JOB, **submit_options(settings))

    results = settle(groups, ["group.audit"], settings.policy, settings.reports, operation=Operation.AUDIT.value)
    each.expand(tables=groups) >> results
    audited.expand(results=results, place=places(results))
    unchanged(results)
    page(results, settings.policy, settings.reports, operation=Operation.AUDIT.value)
    send(results, settings)


@task(map_index_template=TABLE)
def audited(results: Sequence[SettledEntry], place: int) -> str:
    """Ends as the table's audit did: failed where a commit is not what it states, skipped where nothing is proven."""
    return str(unless_raised(results, place))


@task(map_index_template=TABLE)
def swept(results: Sequence[SettledEntry], place: int) -> str:
    """Ends as the table's sweep did: skipped where there are orphans that the policy leaves where they are."""
    return str(unless_raised(results, place))
