"""What may be said to a DAG run that is started through Airflow's REST API, asked of an API server as it runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.airflow_home import Airflow, airflow_home, with_database

from nightkeep_airflow.parameters import unknown
from nightkeep_airflow.request_filter import MAX_BODY_BYTES

SECONDS = 240
OTHERS = """
from airflow.sdk import dag, task
@dag(schedule=None)
def of_others():
    @task
    def nothing(): ...
    nothing()
of_others()
"""


def test_what_is_unknown_is_reported_with_what_is_known() -> None:
    assert unknown(None, ["table"]) is unknown({}, ()) is unknown({"table": 1}, ["table", "full"]) is None
    assert unknown({"tabel": 1, "full": 1}, ["table", "full"]) == (
        "parameters: expected table, full; found 'tabel'; did you mean table?"
    )
    assert unknown({"x" * 500: 1}, ()) == (
        f"parameters: expected none, as this DAG has no parameters; found {'x' * 80!r}"
    )
    assert (unknown({f"p{n:02}": 1 for n in range(12)}, ()) or "").endswith("'p09' and 2 more")


@dataclass(frozen=True, slots=True)
class Server:
    """An API server; `tokens` of those who may start runs and of those who may look."""

    url: str
    tokens: Mapping[str, str]
    airflow: Airflow

    def post(self, dag_id: str, body: bytes | dict[str, Any], *, role: str | None = "admin") -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps({"logical_date": None, **body}).encode()
        headers = {"Content-Type": "application/json"}
        if role is not None:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        return self._asked(urllib.request.Request(f"{self.url}/api/v2/dags/{dag_id}/dagRuns", data, headers))

    def _asked(self, request: urllib.request.Request) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as failure:
            return failure.code, json.loads(failure.read())

    def runs(self) -> int:
        ((count,),) = self.airflow.query("select count(*) from dag_run")
        return int(count)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path) -> Iterator[Server]:
    airflow = with_database(airflow_home(tmp_path_factory.mktemp("server"), ["t.table"]), airflow_database)
    (airflow.home / "others").mkdir()
    (airflow.home / "others/of_others.py").write_text(OTHERS)
    for folder in (airflow.environ["AIRFLOW__CORE__DAGS_FOLDER"], str(airflow.home / "others")):
        done = airflow.call("airflow", "dags", "reserialize", AIRFLOW__CORE__DAGS_FOLDER=folder)
        assert done.returncode == 0, done.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("airflow")), "api-server", "--port", str(port), "--workers", "1"]
    environ = {**airflow.environ, "AIRFLOW__API_AUTH__JWT_SECRET": "s" * 64}
    tokens = Airflow(airflow.home, environ).python(
        """
import json
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
manager = init_auth_manager()
print(json.dumps({r: manager.generate_jwt(SimpleAuthManagerUser(username=r, role=r)) for r in ("admin", "viewer")}))"""
    )
    with (airflow.home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1"], env=environ, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _until_it_answers(f"http://127.0.0.1:{port}", process, airflow.home / "server.log")
            yield Server(f"http://127.0.0.1:{port}", tokens, airflow)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)


def _until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"{url}/api/v2/version", timeout=10):
            return
        time.sleep(0.5)
    raise AssertionError(log.read_text()[-4000:])


@pytest.mark.extended
def test_a_parameter_that_the_form_does_not_know_is_a_400_and_no_run(server: Server) -> None:
    before = server.runs()
    status, answer = server.post("on_demand", {"conf": {"tabel": "t.table", "dry_run": True}})
    assert status == 400
    assert answer["detail"].startswith("parameters: expected table, operation, where, dry_run")
    assert answer["detail"].endswith("; found 'tabel'; did you mean table?")
    for dag_id in ("nightly", "orphan_sweep"):
        status, answer = server.post(dag_id, {"conf": {"full": True}})
        assert (status, answer["detail"]) == (
            400,
            "parameters: expected none, as this DAG has no parameters; found 'full'",
        )
    assert server.runs() == before


@pytest.mark.extended
def test_parameters_that_are_known_and_none_at_all_start_a_run(server: Server) -> None:
    before = server.runs()
    status, answer = server.post("on_demand", {"conf": {"table": "t.table", "where": "\u00e4 = 1"}})
    assert (status, answer["conf"]["table"], answer["conf"]["where"]) == (200, "t.table", "\u00e4 = 1")
    for body in ({}, {"conf": {}}, {"conf": None}):
        assert server.post("nightly", body)[0] == 200
    assert server.runs() == before + 4


@pytest.mark.extended
def test_a_dag_of_others_takes_any_parameter(server: Server) -> None:
    status, answer = server.post("of_others", {"conf": {"any": "thing"}})
    assert (status, answer["conf"]) == (200, {"any": "thing"})


@pytest.mark.extended
@pytest.mark.parametrize(("role", "expected"), [(None, 401), ("viewer", 403)])
def test_who_may_not_start_a_run_learns_nothing_of_its_parameters(
    server: Server, role: str | None, expected: int
) -> None:
    status, answer = server.post("on_demand", {"conf": {"tabel": 1}}, role=role)
    assert status == expected and "expected" not in json.dumps(answer)


BODIES: Mapping[str, tuple[bytes, int]] = {
    "no JSON": (b"{", 422),
    "a list": (b"[]", 422),
    "parameters that are a list": (b'{"logical_date": null, "conf": ["tabel"]}', 422),
    "nothing": (b"", 422),
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", BODIES)
def test_what_is_no_request_for_a_run_is_airflows_to_refuse(server: Server, kind: str) -> None:
    body, expected = BODIES[kind]
    status, answer = server.post("on_demand", body)
    assert status == expected, answer
    assert "expected table" not in json.dumps(answer)


@pytest.mark.extended
def test_a_large_body_arrives_whole(server: Server) -> None:
    for size in (MAX_BODY_BYTES // 2, MAX_BODY_BYTES + 100_000):
        status, answer = server.post("of_others", {"conf": {"text": "x" * size}})
        assert (status, len(answer["conf"]["text"])) == (200, size)


@pytest.mark.extended
def test_a_dag_that_is_not_there_is_airflows_to_report(server: Server) -> None:
    assert server.post("nosuch", {"conf": {"tabel": 1}})[0] == 404
