"""The nightly DAG with reports in a bucket: tasks hand each other nothing through a folder, and pages are served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.s3_server import Bucket
from tests.support.airflow_home import Airflow, DagRun, airflow_home, finished, with_database, without_jvm

from nightkeep.model import Outcome
from nightkeep.places import read_text
from nightkeep.records import load_history

pytestmark = pytest.mark.extended

TABLES = {"t.fine": ["verified"], "t.deadly": ["die"], "t.lost_once": ["conflicted", "verified"]}


@pytest.fixture
def airflow(airflow_database: Path, s3_bucket: Bucket, tmp_path: Path) -> Iterator[Airflow]:
    """Its policy discovers nothing; its folder of reports does not exist."""
    scripted = without_jvm(with_database(airflow_home(tmp_path, TABLES), airflow_database))
    yield replace(scripted, environ={**scripted.environ, "NIGHTKEEP_REPORTS": f"{s3_bucket.uri}/nights"})


def test_a_night_is_settled_from_the_bucket(airflow: Airflow, s3_bucket: Bucket) -> None:
    airflow.script(care=TABLES)
    done = airflow.call("airflow", "dags", "test", "nightly", "2026-11-20")
    run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert outcomes(run) == {"t.fine": "success", "t.deadly": "failed", "t.lost_once": "success"}, run.log[-3000:]
    assert all(str(call["result"]).startswith(f"{s3_bucket.uri}/nights/~results/") for call in run.care)
    assert [call["died"] for call in run.care][:2] == [[], ["t.deadly"]]
    place = f"{s3_bucket.uri}/nights"
    assert {each.table: each.outcome for each in load_history(place)}["t.deadly"] is Outcome.FAILED
    assert {"t.fine", "t.lost_once"} <= {each.table for each in load_history(place)}
    left = {path.relative_to(s3_bucket.folder).parts[1] for path in s3_bucket.folder.rglob("*") if path.is_file()}
    assert "~results" not in left and not (airflow.home / "reports").exists()
    (page,) = (s3_bucket.folder / "nights" / "pages").glob("nightly-*.html")
    assert "t.lost_once" in str(read_text(f"{place}/pages/{page.name}"))
    assert page.name in str(read_text(f"{place}/pages/index.html"))
    answers = airflow.python(
        f"""
import json
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient
with TestClient(create_app(apps="core"), raise_server_exceptions=False) as client:
    user = SimpleAuthManagerUser(username="u", role="viewer")
    headers = {{"Authorization": "Bearer " + get_auth_manager().generate_jwt(user)}}
    names = ("", "files/pages/{page.name}", "files/pages/none.html", "files/../outside.html")
    names += ("files/pages/" + "n" * 300 + ".html", "files/" + "d/" * 600 + "index.html")
    answers = [client.get("/nightkeep/" + name, headers=headers) for name in names]
    anonymous = client.get("/nightkeep/files/pages/{page.name}").status_code
    print(json.dumps([[each.status_code, "t.lost_once" in each.text] for each in answers] + [anonymous]))"""
    )
    assert answers[:3] == [[200, True], [200, True], [404, False]]
    assert answers[4:] == [[404, False], [404, False], 401]


def outcomes(run: DagRun) -> dict[str, str]:
    return {str(key): state for (task, key), (state, _) in run.tasks.items() if task == "outcome"}
