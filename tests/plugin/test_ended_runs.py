"""A run is at once what a user marks it as: by the functions that the REST API of Airflow calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.airflow_home import Airflow, airflow_home, with_database

MARK = """
import json
from airflow.api.common import mark_tasks
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.sdk import timezone
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select

def filled(params):
    if "operation" not in params:
        return None
    return {"table": "t.verified", "operation": params.get_param("operation").schema["enum"][0], "where": "id = 1"}

with create_session() as session:
    session.add(DagBundleModel(name="dags-folder"))
sync_bag_to_db(DagBag(bundle_name="dags-folder"), "dags-folder", None)
found = {}
with create_session() as session:
    for dag_id in sorted(session.scalars(select(SerializedDagModel.dag_id).distinct())):
        dag = SerializedDagModel.get_dag(dag_id, session=session)
        for state in ("failed", "success"):
            run = dag.create_dagrun(
                run_id=state, run_type=DagRunType.MANUAL, state=DagRunState.RUNNING, run_after=timezone.utcnow(),
                triggered_by=DagRunTriggeredByType.REST_API, session=session,
                conf=filled(dag.params),
            )
            run.task_instances[0].state = "running"
            session.flush()
            mark = getattr(mark_tasks, f"set_dag_run_state_to_{state}")
            mark(dag=dag, run_id=state, commit=True, session=session)
            found.setdefault(dag_id, []).append(run.state)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_run_is_at_once_what_a_user_marks_it_as(airflow_database: Path, tmp_path: Path) -> None:
    airflow: Airflow = with_database(airflow_home(tmp_path, {}), airflow_database)
    found = airflow.python(MARK)
    assert found.keys() >= {"nightly", "on_demand", "audit"}
    assert set(map(tuple, found.values())) == {("failed", "success")}, found
