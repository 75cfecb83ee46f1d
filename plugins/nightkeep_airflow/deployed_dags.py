"""Airflow's database -> what each DAG of ours needs, and the pools that there are. No task can read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.pool import Pool
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, object_session

from nightkeep.errors import UsageError
from nightkeep.readiness.finding import Finding, Readiness
from nightkeep.readiness.policy_side import read_policy
from nightkeep.readiness.reports_side import try_reports
from nightkeep_airflow.needs import ARGUMENT, FIRST_TASKS, Needs
from nightkeep_airflow.parameters import TAG
from nightkeep_airflow.readiness import find_submitting, pool_rows
from nightkeep_airflow.settings import from_environment


def find_deployed(environ: Mapping[str, str], schemes: tuple[str, ...]) -> tuple[Finding, ...]:
    """Rows of the pools, connections, scripts, drivers, policies and reports of all DAGs of ours that Airflow knows; of
    none, what DAGs take of the environment."""
    try:
        with create_session() as session:
            found = [*dict.fromkeys(_needs(session))]
            pools = known_pools(session)
    except SQLAlchemyError as failure:
        return (_database_row(Readiness.FAILED, str(failure).split("\n")[0]),)
    needs = found or [*_by_default(environ)]
    # The driver of two DAGs is asked once: a task's interpreter is that of its machine.
    submitting = {(each.connection, each.jobs): find_submitting(each, schemes) for each in needs}
    return (
        _database_row(Readiness.PASSED, f"{len(found)} ways in which DAGs of ours are set up"),
        *pool_rows([each.pool for each in needs], pools),
        *(row for rows in submitting.values() for row in rows),
        *(row for policy in dict.fromkeys(each.policy for each in needs) for row in read_policy(policy)[1]),
        *map(try_reports, dict.fromkeys(each.reports for each in needs)),
    )


def missing_pools(dag_run: DagRun, tasks: Iterable[Any]) -> tuple[Finding, ...]:
    """A row for each pool of these tasks that does not exist, by the session that the run is of."""
    session = object_session(dag_run)
    if session is None:
        return ()
    with session.no_autoflush:
        rows = pool_rows([each.pool for each in tasks], known_pools(session))
    return tuple(each for each in rows if each.hinders)


def known_pools(session: Session) -> frozenset[str]:
    return frozenset(session.scalars(select(Pool.pool)))


def _needs(session: Session) -> Iterator[Needs]:
    for dag in SerializedDagModel.read_all_dags(session=session).values():
        if TAG in dag.tags:
            yield from needs_of_dag(dag)


def needs_of_dag(dag: Any) -> Iterator[Needs]:
    """What the first task of a DAG of ours has among its arguments."""
    yield from needs_of(dag.task_dict[name] for name in FIRST_TASKS if name in dag.task_dict)


def needs_of(tasks: Iterable[Any]) -> Iterator[Needs]:
    """What first tasks have among their arguments. A DAG that another release wrote has none, or other ones."""
    for task in tasks:
        value = dict(getattr(task, "op_kwargs", None) or {}).get(ARGUMENT)
        if isinstance(value, Mapping) and value.keys() == set(Needs.__dataclass_fields__):
            yield Needs.from_json(value)


def _by_default(environ: Mapping[str, str]) -> Iterator[Needs]:
    try:
        yield from_environment(environ, None).needs
    except UsageError:
        # Nothing names a policy, and no DAG of ours is known: there is nothing to ask for.
        return


def _database_row(status: Readiness, found: str) -> Finding:
    return Finding(
        check="airflow",
        status=status,
        subject="Airflow's database",
        expected="an answer",
        found=found,
        remedy=None if status is Readiness.PASSED else "airflow db check",
    )
