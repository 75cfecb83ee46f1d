"""A stored page or document -> the DAGs whose readers may see it, by Airflow's database.

A name begins with the prefix of its run, which is made of the DAG's id and the run's. A prefix alone does not tell
`nightly` and `nightly-eu` apart, so that the DAG is the one that has such a run. Where no run is left, or none was
Airflow's, who sees it may read every DAG that the name could be of.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Final

from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import select

from nightkeep.records.file_names import NO_TABLES, PAGES, VALUES
from nightkeep_airflow.deployed_dags import needs_of_dag
from nightkeep_airflow.parameters import TAG
from nightkeep_airflow.runs import begins_as, run_prefix

_TABLE: Final = "~3a"
"""What a run id's `:` is in a file name; the table comes after it."""


def our_dags() -> frozenset[str]:
    """The ids of the DAGs of this package."""
    with create_session() as session:
        return frozenset(session.scalars(select(DagTag.dag_id).where(DagTag.name == TAG)))


def reports_of(dag_id: str) -> str | None:
    """The place of a DAG's reports; None for a DAG that is not one of ours."""
    with create_session() as session:
        found = SerializedDagModel.get(dag_id, session=session)
        dag = found.dag if found is not None else None
        if dag is None or TAG not in dag.tags:
            return None
        return next((each.reports for each in needs_of_dag(dag)), None)


def owners_of(name: str, dags: Collection[str]) -> frozenset[str]:
    """Of `dags`, those that a reader of this file must be allowed to read: the one whose run it is, else all that it
    could be of, else all."""
    path = PurePosixPath(name)
    if not _is_of_run(path):
        return frozenset(dags)
    prefix = path.stem.partition(_TABLE)[0]
    could = frozenset(dag for dag in dags if begins_as(prefix, dag))
    return next((frozenset({dag}) for dag in sorted(could) if _has_run(dag, prefix)), could or frozenset(dags))


def _is_of_run(path: PurePosixPath) -> bool:
    """Whether a file is of one run: its page, documents and results in the folder of a table, and values of rows with
    their page. Pages of tables, Data Docs, holds, marks and found tables are of all DAGs, whatever their names begin
    like, and so is a name that leads back to them."""
    if not path.parts or ".." in path.parts:
        return False
    below = path.parts[1:] if path.parts[0] == PAGES else path.parts
    if below[:1] == (VALUES,):
        return len(below) == 3
    return len(below) == 1 if path.parts[0] == PAGES else below[0] not in NO_TABLES


def _has_run(dag_id: str, prefix: str) -> bool:
    with create_session() as session:
        runs = session.scalars(select(DagRun.run_id).where(DagRun.dag_id == dag_id))
        return any(run_prefix(dag_id, run) == prefix for run in runs)
