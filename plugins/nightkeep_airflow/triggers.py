"""A request to start a DAG -> an error if it names parameters that the DAG does not know.

Airflow's own guard comes before the answer: who may not start the DAG learns nothing of its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Request
from starlette.concurrency import run_in_threadpool

from nightkeep_airflow.parameters import REFUSED, TAG, unknown

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@app.post(
    "/api/v2/dags/{dag_id}/dagRuns",
    dependencies=[Depends(requires_access_dag("POST", access_entity=DagAccessEntity.RUN))],
)
def refuse(dag_id: str, request: Request) -> None:
    """400, with what is known and what was found as `detail`."""
    raise HTTPException(400, request.scope[REFUSED])


async def wrong(api: FastAPI, dag_id: str, conf: Mapping[str, object]) -> str | None:
    """What is wrong with the parameters of a run of a DAG, None where nothing is or the DAG is not one of ours."""
    return await run_in_threadpool(_wrong, api, dag_id, conf)


def _wrong(api: FastAPI, dag_id: str, conf: Mapping[str, object]) -> str | None:
    with create_session() as session:
        dag = api.state.dag_bag.get_latest_version_of_dag(dag_id, session=session)
        return unknown(conf, list(dag.params)) if dag is not None and TAG in dag.tags else None
