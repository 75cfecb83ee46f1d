"""One table, now: a form for what to do with it. A dry run, the default, plans and changes nothing.

The plan is in the log of `care` and on the run's page. The chain is the nightly one, for a group of one.
"""

from nightkeep_airflow.dags import on_demand

on_demand(beside=__file__, doc_md=__doc__)
