"""A run of one of our DAGs begins -> a note on it where its pool does not exist, which its first task fails with.

Airflow leaves a task waiting for ever whose pool does not exist. Only processes with Airflow's database see pools, and
a task sees of them what is on its run: the note. Airflow 3.1 passes no note to tasks; there it is seen in the UI alone.
Every process of Airflow's loads this module: it imports nothing slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from airflow.listeners import hookimpl

from nightkeep_airflow.parameters import TAG

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

_BEGIN: Final = "nightkeep: "
"""How a note of this module begins. Those of people stay as they are."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:
    """Called by the scheduler, in its transaction. A run that is cleared begins again, and its note is of then."""
    dag = dag_run.dag
    if dag is None or TAG not in dag.tags:
        return
    from nightkeep_airflow.deployed_dags import missing_pools  # noqa: PLC0415 -- Airflow's models are loaded by now

    note = "\n".join(str(each) for each in missing_pools(dag_run, dag.tasks))
    if note or pool_note(dag_run):
        dag_run.note = f"{_BEGIN}{note}" if note else None


def pool_note(dag_run: Any) -> str | None:
    """What this module noted on a run; None where its pools were there."""
    note = getattr(dag_run, "note", None) or ""
    return note.removeprefix(_BEGIN) if note.startswith(_BEGIN) else None
