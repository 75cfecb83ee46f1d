"""One table, now: a form for what to do with it. A dry run, the default, shows what would be done and changes nothing.

Airflow gives rights by DAG, so there are three. `on_demand` changes no row that a reader sees: it rewrites files,
sweeps and expires. `change_rows` deletes and updates rows. `undo` releases a table from its hold, and restores files
from quarantine. What would be done is on the run's page. The chain is the nightly one, for a group of one.
"""

from nightkeep_airflow.dags import on_demand

on_demand(beside=__file__, doc_md=__doc__)
on_demand("change_rows", operations=("delete", "update"), beside=__file__, doc_md=__doc__)
on_demand("undo", operations=("release", "restore"), beside=__file__, doc_md=__doc__)
