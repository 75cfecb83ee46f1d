"""Who may start a run of which form: by Airflow's roles, and by the DAGs that its auth manager grants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.airflow_home import ROOT, Airflow, airflow_home, with_database

FORMS = {
    "sweep": ("on_demand", {"operation": "sweep"}),
    "delete": ("change_rows", {"operation": "delete", "rows_where": "a = 1"}),
    "update": ("change_rows", {"operation": "update", "rows_where": "a = 1", "set": ["a = 2"]}),
    "release": ("undo", {"operation": "release"}),
    "restore": ("undo", {"operation": "restore", "run_id": "r1"}),
}
"""What a form asks for, and of which DAG."""

ASKED = """
import json, os
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient
found = {}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    for name, role in json.loads(os.environ["USERS"]):
        user = SimpleAuthManagerUser(username=name, role=role)
        headers = {"Authorization": "Bearer " + get_auth_manager().generate_jwt(user)}
        for asked, (dag_id, form) in json.loads(os.environ["FORMS"]).items():
            body = {"logical_date": None, "conf": {"table": "t", **form}}
            answer = client.post(f"/api/v2/dags/{dag_id}/dagRuns", json=body, headers=headers)
            found[f"{name} {role} {asked}"] = answer.status_code
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def airflow(airflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Airflow:
    made = with_database(airflow_home(tmp_path_factory.mktemp("rights"), ["t"]), airflow_database)
    assert (done := made.call("airflow", "dags", "reserialize")).returncode == 0, done.stderr
    return made


def answers(airflow: Airflow, users: list[tuple[str, str]], **variables: str) -> dict[str, int]:
    given = {"USERS": json.dumps(users), "FORMS": json.dumps(FORMS)}
    found: dict[str, int] = airflow.python(ASKED, **given, **variables)
    return found


@pytest.mark.slow
def test_a_form_is_started_by_roles_that_may_start_runs(airflow: Airflow) -> None:
    roles = {"viewer": 403, "user": 200, "op": 200, "admin": 200}
    before = len(airflow.query("select 1 from dag_run"))
    found = answers(airflow, [(role, role) for role in roles])
    assert found == {f"{role} {role} {form}": status for role, status in roles.items() for form in FORMS}
    assert len(airflow.query("select 1 from dag_run")) == before + 3 * len(FORMS)


@pytest.mark.slow
def test_each_form_is_granted_by_its_dag(airflow: Airflow) -> None:
    ours = {
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.auth_per_dag.AuthPerDag",
        "PYTHONPATH": f"{airflow.environ['PYTHONPATH']}:{ROOT}",
    }
    dags = sorted({dag_id for dag_id, _ in FORMS.values()})
    found = answers(airflow, [(dag_id, "admin") for dag_id in dags], **ours)
    expected = {(granted, form): granted == dag_id for granted in dags for form, (dag_id, _) in FORMS.items()}
    assert found == {f"{granted} admin {form}": 200 if may else 403 for (granted, form), may in expected.items()}
