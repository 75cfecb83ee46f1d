"""A run of one of our DAGs begins -> what is missing of its pools is a parameter of the run, by which its first task
fails.

Airflow leaves a task waiting for ever whose pool does not exist. Only processes with Airflow's database see pools. Of
what the scheduler knows, a task sees its run alone: the parameters are passed by every release, and a note is not.
Every process of Airflow's loads this module: it imports nothing slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from airflow.listeners import hookimpl

from nightkeep_airflow.parameters import TAG

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

MISSING: Final = "nightkeep.missing"
"""The parameter. No request may set it, as no DAG knows it."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Called by the scheduler, in its transaction. A run that is cleared begins again, and is looked at again."""
    dag = dag_run.dag
    if dag is None or TAG not in dag.tags:
        return
    from nightkeep_airflow.deployed_dags import missing_pools  # noqa: PLC0415 -- Airflow's models are loaded by now

    missing = "\n".join(str(each) for each in missing_pools(dag_run, dag.tasks))
    if missing != (missing_of(dag_run) or ""):
        dag_run.conf = {**given_parameters(dag_run), **({MISSING: missing} if missing else {})}


def missing_of(dag_run: Any) -> str | None:
    """What of its pools was missing when a run began; None where nothing was."""
    missing = (dag_run.conf or {}).get(MISSING)
    return None if missing is None else str(missing)


def given_parameters(dag_run: Any) -> dict[str, object]:
    """The parameters that a run was started with."""
    return {name: value for name, value in (dag_run.conf or {}).items() if name != MISSING}
