"""Every night at 02:00 UTC, every table of tables.yaml: maintain it, check it, report the outcome.

Tables are a group, or several if they are many (`tables_per_session`). One Spark job per group, in the pool
`nightkeep_spark`, which runs whatever each table's policy asks for and checks what that publishes; then a task that
lists what was checked, which starts a second one only where a check is missing; then one small task per table, which
carries the table's outcome and, when a verified commit was published, its asset.
The chain, and who retries what, is in `nightkeep_airflow.tasks`. One run at a time: two would only race.

A table that has to wait for the next night costs nothing but time, so missed nights are not caught up on: there is no
start date, so that a DAG switched on in the daytime waits for the night, and a run that starts hours late, after a
pause or a stop of the scheduler, does nothing. Who wants one now triggers it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import CronTriggerTimetable, dag
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from nightkeep_airflow.alerts import late
from nightkeep_airflow.settings import from_environment
from nightkeep_airflow.tasks import care_for, scheduled_groups

SETTINGS = from_environment(os.environ, Path(__file__).parent)

# Only on request: `airflow dags test` of a DAG with a deadline ends in an error (apache/airflow#73428).
DEADLINES = [
    DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, interval=after, callback=SyncCallback(late))
    for after in SETTINGS.deadlines
]


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone="UTC", run_immediately=timedelta(0)),
    dagrun_timeout=SETTINGS.run_timeout,
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": SETTINGS.retry_delay},
    deadline=DEADLINES or None,
    doc_md=__doc__,
    tags=["nightkeep"],
)
def nightly() -> None:
    care_for(scheduled_groups(SETTINGS), SETTINGS)


nightly()
