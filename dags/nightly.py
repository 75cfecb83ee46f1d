"""Every night at 02:00 UTC, every table of tables.yaml: maintain it, check it, report the outcome.

Tables are a group, or several if they are many (`tables_per_session`). One Spark job per group, in the pool
`nightkeep_spark`, which runs whatever each table's policy asks for and checks what that publishes; then a task that
reads the documents, and starts a second job only for versions without a check; then one small task per table, which
carries the table's outcome and, when a verified commit was published, its asset.
The chain, and who retries what, is in `nightkeep_airflow.tasks`. One run at a time: two would only race.

A table that has to wait for the next night costs nothing but time, so missed nights are not caught up on: there is no
start date, so that a DAG switched on in the daytime waits for the night, and a run that starts hours late, after a
pause or a stop of the scheduler, does nothing. Who wants one now triggers it.
"""

from nightkeep_airflow.dags import nightly

nightly(beside=__file__, doc_md=__doc__)
