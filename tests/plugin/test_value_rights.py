"""Values of rows are for who has a right of their own, whatever way leads to them; everything else is as before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plugin.test_page_rights import RUN
from tests.records.test_kept_index import NIGHT
from tests.records.test_kept_index import document as of_night
from tests.support.airflow_home import ROOT, Airflow, airflow_home, with_database

from nightkeep.model import UnitKey
from nightkeep.nights.value_pages import write_value_pages
from nightkeep.records import store
from nightkeep.records.check_report import Difference, UnitDifference
from nightkeep.records.row_values import files_of_values, keep_values, shows_values
from nightkeep_airflow.runs import run_prefix

MARK = "PLANTED-5d20"
DAGS = """
from nightkeep_airflow.dags import nightly
nightly("nightly", policy="{home}/tables.yaml", reports="{home}/reports")
nightly("nightly-eu", policy="{home}/tables.yaml", reports="{home}/reports")
"""
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
    session.add(DagRun(dag_id="nightly", **run))
def headers(name, role):
    user = SimpleAuthManagerUser(username=name, role=role)
    return {"Authorization": "Bearer " + get_auth_manager().generate_jwt(user)}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    found = {}
    for path in json.loads(os.environ["PATHS"]):
        for name, role in json.loads(os.environ["USERS"]):
            answer = client.get("/nightkeep/" + path, headers=headers(name, role))
            found.setdefault(path, {})[name] = [answer.status_code, answer.text]
        answer = client.get("/nightkeep/" + path)
        found[path]["nobody"] = [answer.status_code, answer.text]
    print(json.dumps(found))
"""


@pytest.fixture
def airflow(airflow_database: Path, tmp_path: Path) -> Airflow:
    made = with_database(airflow_home(tmp_path, ["t"]), airflow_database)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/team.py").write_text(DAGS.format(home=tmp_path))
    done = made.call("airflow", "dags", "reserialize", AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"))
    assert done.returncode == 0, done.stderr
    return made


def kept(airflow: Airflow) -> tuple[str, ...]:
    """A document of a run of `nightly` with values, and their page; the names of the files that have values."""
    reports = airflow.home / "reports"
    difference = UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=({"name": MARK},)))
    made = keep_values(
        replace(of_night("t", 0), run_id=f"{run_prefix('nightly', RUN)}:t"), reports, differences=(difference,)
    )
    store(made, reports)
    write_value_pages([made], reports=str(reports), folder=str(reports), now=NIGHT)
    return files_of_values(made)


def asked(airflow: Airflow, paths: list[str], users: list[tuple[str, str]], manager: str | None = None) -> Any:
    ours = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(airflow.home / "dags"),
        "PYTHONPATH": f"{airflow.environ['PYTHONPATH']}:{ROOT}",
        **({"AIRFLOW__CORE__AUTH_MANAGER": f"tests.support.{manager}"} if manager else {}),
    }
    return airflow.python(ASKED, RUN=RUN, PATHS=json.dumps(paths), USERS=json.dumps(users), **ours)


def ways_to(name: str) -> list[str]:
    """Addresses of a file below the place of reports, straight and guessed."""
    folder, _, file = name.rpartition("/")
    return [
        f"files/{name}",
        f"dags/nightly/files/{name}",
        f"dags/nightly-eu/files/{name}",
        f"files/{name.replace('~', '%7E')}",
        f"files/./{name}",
        f"files/pages/%2e%2e/{name}",
        f"files/t/..%2f{name}",
        f"files/{folder}//{file}",
    ]


@pytest.mark.slow
def test_each_role_of_airflows_own_manager(airflow: Airflow) -> None:
    names = kept(airflow)
    paths = [way for name in names for way in ways_to(name)]
    plain = f"files/t/{Path(names[0]).name}"
    roles = ["viewer", "user", "op", "admin"]
    found = asked(airflow, [*paths, plain], [(role, role) for role in roles])
    assert {who: status for who, (status, _) in found[plain].items()} == {**dict.fromkeys(roles, 200), "nobody": 401}
    assert not any(MARK in text for _, text in found[plain].values())
    for path in paths:
        assert {who: status for who, (status, _) in found[path].items() if who in ("nobody", "viewer")} == {
            "nobody": 401,
            "viewer": 403,
        }, path
        assert MARK not in found[path]["viewer"][1] + found[path]["nobody"][1]
    for name in names:
        straight = found[f"files/{name}"]
        assert all(straight[role][0] == 200 and MARK in straight[role][1] for role in roles[1:]), name


@pytest.mark.slow
def test_a_manager_that_knows_views_grants_them_by_name(airflow: Airflow) -> None:
    names = kept(airflow)
    users = [("nightly", "admin"), ("nightly+values", "viewer"), ("nightly-eu+values", "admin"), ("values", "admin")]
    paths = [way for name in names for way in ways_to(name)]
    found = asked(airflow, paths, users, "auth_per_view.AuthPerView")
    for path in paths:
        readers = {who for who, (_, text) in found[path].items() if MARK in text}
        assert readers <= {"nightly+values"}, path
    for name in names:
        statuses = {who: status for who, (status, _) in found[f"files/{name}"].items()}
        assert statuses == {**dict.fromkeys((name for name, _ in users), 403), "nightly+values": 200, "nobody": 401}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("~values/t/r-optimize.json", True),
        ("pages/~values/t/r-optimize.html", True),
        ("~VALUES/t/r-optimize.json", True),
        ("t/../~values/t/r-optimize.json", True),
        ("t/..", True),
        ("t/r-optimize.json", False),
        ("values/r-optimize.json", False),
        ("pages/values.html", False),
        ("", False),
    ],
)
def test_a_name_shows_values_by_its_folder(name: str, shown: bool) -> None:
    assert shows_values(name) is shown
