"""The page of a dry run: who sees the plan, who starts it, and that it starts one run of exactly that plan."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake
from tests.support.airflow_home import ROOT, airflow_home, with_database

from nightkeep_airflow.runs import run_prefix

DAGS = """
from nightkeep_airflow.dags import on_demand
on_demand(policy="{home}/tables.yaml", reports="{home}/reports")
"""
RUN = "manual__a+01:00"
ASKED = """
import json, os
from datetime import UTC, datetime
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import select
from urllib.parse import quote
RUN = os.environ["RUN"]
now = datetime.now(UTC)
with create_session() as session:
    for name, conf in ((RUN, {"table": "t", "full": True}), ("acted", {"table": "t", "dry_run": False})):
        run = {"run_id": name, "run_type": "manual", "run_after": now, "logical_date": None, "conf": conf}
        session.add(DagRun(dag_id="on_demand", **run))
def token(role):
    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
def runs():
    with create_session() as session:
        started = DagRun.dag_id == "on_demand", DagRun.run_id.not_in([RUN, "acted"])
        found = session.scalars(select(DagRun).where(*started))
        return {each.run_id: [each.conf, each.triggering_user_name] for each in found}
page = f"/nightkeep/dags/on_demand/runs/{quote(RUN, safe='')}/plan"
own = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    def answer(method, role, headers=None, path=page):
        cookies = {"_token": token(role)} if role else {}
        client.cookies = cookies
        got = client.request(method, path, headers=headers or {}, follow_redirects=True)
        return [got.status_code, got.text, dict(got.headers)]
    found = {
        "tab": answer("GET", "viewer", path=f"/nightkeep/?dag_id=on_demand&run_id={quote(RUN, safe='')}"),
        "seen": answer("GET", "viewer"),
        "unknown": answer("GET", None),
        "no dry run": answer("GET", "op", path="/nightkeep/dags/on_demand/runs/acted/plan"),
        "viewer": answer("POST", "viewer", own),
        "other site": answer("POST", "op", {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}),
        "same site": answer("POST", "op", {**own, "sec-fetch-site": "same-site"}),
        "no origin": answer("POST", "op"),
    }
    before = runs()
    found["op"] = answer("POST", "op", own)
    once = runs()
    found["again"] = answer("POST", "op", own)
    client.cookies = {}
    found["token"] = answer("POST", None, {"authorization": f"Bearer {token('op')}"})
print(json.dumps({"answers": found, "before": before, "once": once, "runs": runs()}))
"""


@pytest.mark.slow
def test_a_plan_is_started_once_by_who_may_start_the_dag(airflow_database: Path, tmp_path: Path) -> None:
    airflow = with_database(airflow_home(tmp_path, ["t"]), airflow_database)
    lake = Lake(tmp_path / "t", pa.schema({"id": pa.int64()}))
    for number in range(3):
        lake.append(pa.table({"id": [number]}))
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n- {{name: t, table: 'delta:{tmp_path}/t'}}\n")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/team.py").write_text(DAGS.format(home=tmp_path))
    ours = {"AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags")}
    assert (done := airflow.call("airflow", "dags", "reserialize", **ours)).returncode == 0, done.stderr
    prefix, reports = run_prefix("on_demand", RUN), tmp_path / "reports"
    planned = airflow.call(
        *("python", str(ROOT / "jobs/care.py"), "--policy", str(tmp_path / "tables.yaml"), "--tables", "t"),
        *("--run-id-prefix", prefix, "--reports", str(reports), "--dry-run", "--full", "--without-session"),
    )
    assert planned.returncode == 0, planned.stderr
    (document,) = [json.loads(path.read_text()) for path in reports.rglob("*.json") if prefix in path.name]
    found = airflow.python(ASKED, **ours, RUN=RUN)
    answers = found["answers"]
    status = {name: answer[0] for name, answer in answers.items()}

    assert (status["tab"], status["seen"], status["unknown"], status["no dry run"]) == (200, 200, 401, 404)
    assert answers["tab"][1] == answers["seen"][1]
    assert f"optimize of version {document['base_version']}, 1 unit" in answers["seen"][1]
    assert '<form method="post">' in answers["seen"][1]
    assert "form-action 'self'" in answers["seen"][2]["content-security-policy"]
    denied = ("viewer", "other site", "same site", "no origin")
    assert {name: status[name] for name in denied} == dict.fromkeys(denied, 403)
    assert found["before"] == {}
    assert [status[name] for name in ("op", "again", "token")] == [200, 200, 200]
    ((run_id, (conf, user)),) = found["runs"].items()
    assert found["once"] == found["runs"] and run_id.startswith(f"{RUN}__start-") and user == "op"
    assert conf == {"table": "t", "full": True, "dry_run": False, "expect_plan": document["plan_digest"]}
    assert "was started before" in answers["again"][1] and "was started before" not in answers["op"][1]
