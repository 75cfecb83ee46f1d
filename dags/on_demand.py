"""One table, now: a form for what to do with it. A dry run, the default, plans and changes nothing.

The plan is in the log of `care` and on the run's page. The chain is the nightly one, for a group of one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.sdk import Param, dag, task

from nightkeep.model import RUN_OPERATIONS
from nightkeep.policy.units import SIZE_PATTERN
from nightkeep_airflow.admission import require_known
from nightkeep_airflow.run_tables import find_one, suggested
from nightkeep_airflow.runs import run_prefix
from nightkeep_airflow.settings import from_environment
from nightkeep_airflow.tasks import care_for

SETTINGS = from_environment(os.environ, Path(__file__).parent)

PARAMS = {
    "table": Param(
        type="string",
        title="Table",
        description="A name of tables.yaml, or an address such as paimon:/warehouse/shop.db/orders",
        examples=suggested(SETTINGS.policy, SETTINGS.reports),
        minLength=1,
    ),
    "operation": Param(
        None,
        type=["null", "string"],
        title="Operation",
        description="Left empty: what the policy asks for, else what suits the table's format",
        enum=[None, *(each.value for each in RUN_OPERATIONS)],
    ),
    "where": Param(
        None,
        type=["null", "string"],
        title="Partition filter",
        description="For example dt >= '2026-11-01'; it chooses partitions and never changes rows",
    ),
    "dry_run": Param(True, type="boolean", title="Dry run", description="Plan only; change nothing"),  # noqa: FBT003
    "full": Param(False, type="boolean", title="Full", description="All files, not only new ones"),  # noqa: FBT003
    "zorder": Param(
        None,
        type=["null", "string"],
        title="Z-order",
        description="Columns to cluster by when optimizing, separated by commas; not together with Hilbert",
    ),
    "hilbert": Param(
        None,
        type=["null", "string"],
        title="Hilbert",
        description="Columns to cluster by along a Hilbert curve, separated by commas",
    ),
    "target_size": Param(
        None,
        type=["null", "string"],
        title="Target size",
        description="Of the files written, such as 256MB",
        pattern=SIZE_PATTERN,
    ),
}

OPTIONS = (
    "{{ '--where=' ~ params.where if params.where else '' }}",
    "{{ '--dry-run' if params.dry_run else '' }}",
    "{{ '--full' if params.full else '' }}",
    "{{ '--zorder=' ~ params.zorder if params.zorder else '' }}",
    "{{ '--hilbert=' ~ params.hilbert if params.hilbert else '' }}",
    "{{ '--target-size=' ~ params.target_size if params.target_size else '' }}",
)


@task(retries=0)
def asked(policy: str, reports: str, *, params: Any = None, dag_run: Any = None) -> list[list[str]]:
    """The table of the form, as a group of one, by the name that reports have for it."""
    require_known(dag_run.conf, PARAMS)
    prefix, table = run_prefix(dag_run.dag_id, dag_run.run_id), params["table"]
    return [[find_one(policy, reports, prefix, table).effective(table).address.name]]


@dag(
    schedule=None,
    max_active_runs=1,
    # Nothing starts by itself, so there is nothing to hold back.
    is_paused_upon_creation=False,
    dagrun_timeout=SETTINGS.run_timeout,
    # Who filled in the form sees how it went, and a slip in the filter must not be tried again for minutes.
    default_args={"retries": 0},
    params=PARAMS,
    doc_md=__doc__,
    tags=["nightkeep"],
)
def on_demand() -> None:
    care_for(
        asked(SETTINGS.policy, SETTINGS.reports), SETTINGS, operation="{{ params.operation or '' }}", options=OPTIONS
    )


on_demand()
