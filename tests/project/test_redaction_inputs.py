"""A secret planted in every input that a night has is in none of its outputs: logs, documents, results and pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.airflow_home import Airflow, airflow_home
from tests.support.extended import some_extended
from tests.test_redaction import _outputs

from nightkeep.commands.app import main
from nightkeep.commands.job import run_job, sweep_job
from nightkeep.errors import UsageError

S = "Zq7planted"

POLICIES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "an address": (f"tables:\n  - name: t\n    table: paimon:s3://AKIA:{S}@bucket/t", {}),
    "an address of a catalog": (f"tables:\n  - name: t\n    table: iceberg:http://u:{S}@h/db.t", {}),
    "an address from the environment": (
        "tables:\n  - name: t\n    table: delta:${BASE}/t",
        {"BASE": f"s3://AKIA:{S}@bucket"},
    ),
    "a part of one": ("tables:\n  - name: t\n    table: delta:s3://AKIA:${LAKE_SECRET}@bucket/t", {"LAKE_SECRET": S}),
    "a path from a secret": ("tables:\n  - name: t\n    table: delta:/none/${LAKE_SECRET}/t", {"LAKE_SECRET": S}),
    "a default": (f"tables:\n  - name: t\n    table: delta:${{NONE:-s3://AKIA:{S}@bucket}}/t", {}),
    "an unset variable": (f"tables:\n  - name: t\n    table: 'delta:s3://AKIA:{S}@${{NONE}}/t'", {}),
    "a reason to pause": (
        f"tables:\n  - name: t\n    table: delta:/none/t\n    pause: see https://u:{S}@wiki/?token={S}",
        {},
    ),
    "a name": (f"tables:\n  - name: https://u:{S}@h/t\n    table: delta:/none/t", {}),
    "a key that nobody knows": (f"tables:\n  - name: t\n    table: delta:/none/t\n    password: {S}", {}),
    "a value that is none": (f"tables:\n  - name: t\n    table: delta:/none/t\n    task_memory: 'password={S}'", {}),
    "a text that is no policy": (f"'https://u:{S}@h/'", {}),
    "a tag": (f"tables:\n  - name: t\n    table: !!float https://u:{S}@h/", {}),
    "no YAML": (f"tables: ['https://u:{S}@h/", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_extended(POLICIES, keep=5))
def test_no_secret_of_a_policy_is_reported(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, environ = POLICIES[kind]
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    policy, reports = tmp_path / "tables.yaml", tmp_path / "reports"
    policy.write_text(text if text.startswith("'") else f"version: 1\n{text}\n")
    reports.mkdir()
    given = ["--policy", str(policy), "--tables", "t", "--run-id-prefix", "x", "--reports", str(reports)]
    told = ""
    for job in (lambda argv: run_job(argv, operations=()), sweep_job):
        try:
            job([*given, "--result", str(reports / "result.json")])
        except UsageError as failure:
            told += str(failure)
    for verb, table in (("plan", "t"), ("run", "t"), ("sweep", "t"), ("explain", "t"), ("report", "")):
        named = ["--policy", str(policy), *([] if verb == "explain" else ["--reports", str(reports)])]
        with pytest.raises(SystemExit):
            main([verb, *([table] if table else []), *named])
    told += _outputs(tmp_path, capsys)
    assert told.strip() and S not in told and "AKIA" not in told


def test_no_secret_of_a_page_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page of what was refused, which names the table and says why."""
    policy, reports = tmp_path / "tables.yaml", tmp_path / "reports"
    pause = f"see https://u:{S}@wiki/?token={S} and password={S}"
    policy.write_text(f"version: 1\ntables:\n  - name: t\n    table: delta:/none/t\n    pause: {pause}\n")
    for arguments in (["run", "t", "--policy", str(policy)], ["report"]):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--reports", str(reports)])
        assert ended.value.code == 0
    pages = list(reports.rglob("*.html"))
    shown = [page for page in pages if page.name not in ("index.html", "fleet.html")]
    assert len(shown) == 2 and all("see https://" in page.read_text() for page in shown)
    assert S not in _outputs(tmp_path, capsys)


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    airflow = airflow_home(tmp_path, ["t.table"])
    airflow.script()
    return airflow


CONNECTIONS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "user info of the host": ({"host": f"spark://u:{S}@127.0.0.1:1"}, "connection nightkeep_spark: the host"),
    "user info of several hosts": (
        {"host": f"spark://u:{S}@127.0.0.1:1,127.0.0.1:2"},
        "connection nightkeep_spark: the host",
    ),
    "login and password": ({"host": "local[1]", "login": f"u{S}", "password": S}, ""),
    "extras": ({"host": "local[1]", "extra": json.dumps({"principal": None, "password": S, "note": S})}, ""),
}

SUBMIT = """
import json, os, types
from nightkeep_airflow.operators import CareOperator
asked = json.loads(os.environ["ASKED"])
context = {
    "dag_run": types.SimpleNamespace(dag_id="nightly", run_id="manual"),
    "ti": types.SimpleNamespace(try_number=1, max_tries=0),
}
try:
    operator = CareOperator(task_id="care", conn_id="nightkeep_spark", **asked)
    print(json.dumps(["returned", operator.execute(context)]))
except Exception as failure:
    print(json.dumps([type(failure).__name__, str(failure)]))
"""


def submitted(airflow: Airflow, connection: Mapping[str, object], **more: object) -> tuple[list[object], str]:
    """How the task ended, and all that it printed and wrote but for what it was asked."""
    where = {"jobs": str(airflow.home / "jobs"), "policy": str(airflow.home / "tables.yaml"), "tables": ["t.table"]}
    asked = {**where, "reports": str(airflow.home / "reports"), **more}
    told = {"conn_type": "spark", **connection}
    done = airflow.call("python", "-c", SUBMIT, ASKED=json.dumps(asked), AIRFLOW_CONN_NIGHTKEEP_SPARK=json.dumps(told))
    assert done.returncode == 0, done.stderr
    written = [path.read_text(errors="replace") for path in (airflow.home / "reports").rglob("*") if path.is_file()]
    return json.loads(done.stdout.splitlines()[-1]), "\n".join([done.stdout, done.stderr, *written])


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_extended(CONNECTIONS, keep=1))
def test_no_secret_of_a_connection_is_reported(kind: str, airflow: Airflow) -> None:
    connection, refused = CONNECTIONS[kind]
    ended, told = submitted(airflow, connection)
    assert S not in told
    if refused:
        assert ended[0] == "AirflowFailException" and str(ended[1]).startswith(f"{refused}: expected no credentials")
        assert not airflow.calls("care")
    else:
        assert ended[0] == "returned" and len(airflow.calls("care")) == 1


@pytest.mark.extended
@pytest.mark.slow
def test_no_secret_of_a_setting_of_spark_is_reported(airflow: Airflow) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": S, "spark.authenticate.secret": S, "spark.ssl.keyPassword": S}
    ended, told = submitted(airflow, {"host": "local[1]"}, conf=conf)
    assert ended[0] == "returned" and S not in told


@pytest.mark.slow
def test_an_address_with_user_info_is_refused_before_it_is_in_a_command(airflow: Airflow) -> None:
    ended, told = submitted(airflow, {"host": "local[1]"}, tables=[f"paimon:s3://AKIA:{S}@bucket/t"])
    assert ended[0] == "AirflowFailException" and "an address of a table: expected no credentials" in str(ended[1])
    assert S not in told and "AKIA" not in told and not airflow.calls("care")
