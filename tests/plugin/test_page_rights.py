"""Pages and documents are for those who may read the DAG whose run they are of; the index is for who may read all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.airflow_home import ROOT, airflow_home, with_database

from nightkeep.model import Operation
from nightkeep.records.file_names import document_name, page_name, slug
from nightkeep_airflow.runs import begins_as, run_prefix

DAGS = """
from nightkeep_airflow.dags import nightly
nightly("nightly", policy="{home}/tables.yaml", reports="{home}/reports")
nightly("nightly-eu", policy="{home}/tables.yaml", reports="{home}/reports-eu")
"""
RUN, GONE = "manual__a+01:00", "manual__gone"

ASKED = """
import json, os
from datetime import UTC, datetime
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
now = datetime.now(UTC)
with create_session() as session:
    run = {"run_id": os.environ["RUN"], "run_type": "manual", "run_after": now, "logical_date": None}
    for dag_id in ("nightly", "nightly-eu"):
        session.add(DagRun(dag_id=dag_id, **run))
def headers(name):
    user = SimpleAuthManagerUser(username=name, role="viewer")
    return {"Authorization": "Bearer " + get_auth_manager().generate_jwt(user)}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    def get(path, name):
        answer = client.get("/nightkeep/" + path, headers=headers(name))
        return [answer.status_code, answer.text if answer.status_code == 200 else ""]
    paths, names = json.loads(os.environ["PATHS"]), json.loads(os.environ["NAMES"])
    print(json.dumps({path: {name: get(path, name) for name in names} for path in paths}))
"""


@pytest.mark.slow
def test_a_file_is_for_the_readers_of_its_dag(airflow_database: Path, tmp_path: Path) -> None:
    airflow = with_database(airflow_home(tmp_path, ["t"]), airflow_database)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/team.py").write_text(DAGS.format(home=tmp_path))
    of_eu_run = slug(f"{run_prefix('nightly-eu', RUN)}:t")
    of = {
        f"pages/{page_name(run_prefix('nightly', RUN))}": "nightly",
        f"pages/{page_name(run_prefix('nightly-eu', RUN))}": "nightly-eu",
        document_name("t", run_id=f"{run_prefix('nightly-eu', RUN)}:t", operation=Operation.OPTIMIZE): "nightly-eu",
        f"pages/{page_name(run_prefix('nightly', GONE))}": "nightly",
        f"pages/{page_name(run_prefix('nightly-eu', GONE))}": "both",
        "pages/index.html": "both",
        "pages/fleet.html": "both",
        "pages/tables/t.html": "both",
        # Results of a run are its DAG's; pages of Data Docs begin with a table, which may be called like a DAG.
        f"t/expectations/{of_eu_run}-optimize.json": "nightly-eu",
        f"pages/data-docs/{run_prefix('nightly', RUN)}-1.html": "both",
        f"pages/data-docs/t-{run_prefix('nightly', RUN)}~3at-optimize-1.html": "both",
        f"holds/{run_prefix('nightly', RUN)}.json": "both",
        f"~audits/{run_prefix('nightly', RUN)}.json": "both",
        # Its name begins like a run of a DAG; it has the runs of all of them.
        f"pages/tables/{run_prefix('nightly', RUN)}.html": "both",
        document_name("t", run_id="by-hand:t", operation=Operation.OPTIMIZE): "both",
    }
    for place in ("reports", "reports-eu"):
        for name in of:
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).write_text(f"{place}: {name}")
    ours = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.auth_per_dag.AuthPerDag",
        "PYTHONPATH": f"{airflow.environ['PYTHONPATH']}:{ROOT}",
    }
    assert (done := airflow.call("airflow", "dags", "reserialize", **ours)).returncode == 0, done.stderr
    users = ["nightly", "nightly-eu", "nightly+nightly-eu", "other"]
    of_eu = f"?dag_id=nightly-eu&run_id={RUN.replace('+', '%2B')}"
    paths = [*(f"files/{name}" for name in of), *(f"dags/nightly-eu/files/{name}" for name in of), of_eu]
    asked = {"RUN": RUN, "PATHS": json.dumps(paths), "NAMES": json.dumps(users)}
    found = airflow.python(ASKED, **ours, **asked)

    for name, owner in of.items():
        readers = {*users[:3]} & ({owner, users[2]} if owner != "both" else {users[2]})
        answers = {user: status for user, (status, _) in found[f"files/{name}"].items()}
        assert answers == {user: 200 if user in readers else 403 for user in users}, name
        assert found[f"files/{name}"][users[2]][1] == f"reports: {name}"
        below = {user: text for user, (_, text) in found[f"dags/nightly-eu/files/{name}"].items()}
        eu_readers = readers - {"nightly"}
        assert below == {user: f"reports-eu: {name}" if user in eu_readers else "" for user in users}, name
    page = f"reports-eu: pages/{page_name(run_prefix('nightly-eu', RUN))}"
    assert {user: text for user, (_, text) in found[of_eu].items()} == {
        "nightly": "",
        "nightly-eu": page,
        "nightly+nightly-eu": page,
        "other": "",
    }


@pytest.mark.slow
def test_a_name_that_leads_back_has_the_rights_of_no_run(airflow_database: Path, tmp_path: Path) -> None:
    airflow = with_database(airflow_home(tmp_path, ["t"]), airflow_database)
    prefix = run_prefix("nightly", RUN)
    names = [f"t/{prefix}~3at-optimize.json", f"t/../holds/{prefix}.json", f"pages/../pages/{prefix}.html", "", "t/.."]
    script = (
        "import json, os\nfrom nightkeep_airflow.page_rights import owners_of\n"
        "print(json.dumps([sorted(owners_of(each, {'nightly', 'other'})) for each in json.loads(os.environ['NAMES'])]))"
    )
    found = airflow.python(script, NAMES=json.dumps(names))
    assert found == [["nightly"], *[["nightly", "other"]] * 4]


@pytest.mark.parametrize(
    ("dag_id", "of", "could"),
    [
        ("nightly", "nightly", True),
        ("nightly", "nightly-eu", True),
        ("nightly-eu", "nightly", False),
        ("Nightly EU", "nightly-eu", True),
        ("n" * 200, "n" * 200, True),
        ("n" * 200, "n" * 90, False),
    ],
)
def test_a_prefix_begins_as_its_dag(dag_id: str, of: str, could: bool) -> None:
    assert begins_as(run_prefix(of, RUN), dag_id) is could
