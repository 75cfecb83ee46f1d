"""What runs in the containers of docker-compose.yml, run here as processes: health checks, the store, housekeeping."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.drivers.go_programs import go_program
from tests.drivers.postgres_server import PASSWORD, PostgresServer, _program
from tests.drivers.s3_server import _MODULE, _VERSION
from tests.drivers.toolchain import free_port
from tests.support.airflow_home import Airflow, airflow_home, with_database
from tests.support.services import process
from tests.support.standalone_cluster import standalone

from nightkeep.readiness.finding import Readiness
from nightkeep.readiness.reports_side import try_reports

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SECONDS = 90.0

pytestmark = pytest.mark.slow


def health(service: str, **places: str) -> list[str]:
    """The command of a service's health check here. `places`: an address instead of one of a container."""
    words = list(SERVICES[service]["healthcheck"]["test"][1:])
    for old, new in places.items():
        words = [word.replace(f"http://{old.replace('_', '-')}", new) for word in words]
    return [str(ROOT / "docker/healthy.sh"), *words[1:]] if words[0] == "nightkeep-healthy" else words


def call(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **variables}
    words = ["sh", *command] if command[0].endswith(".sh") else command
    return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)


def until_healthy(command: Sequence[str], **variables: str) -> None:
    deadline = time.monotonic() + SECONDS
    while (done := call(*command, **variables)).returncode:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.5)


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/down" else 200)
        self.end_headers()
        self.wfile.write(b'{"dag_processor": {\n  "status": "healthy"}, "triggerer": {"status": "unhealthy"}}')

    def log_message(self, format: str, *arguments: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_healthy_is_a_success_that_has_the_text(server: str) -> None:
    script = str(ROOT / "docker/healthy.sh")
    assert call(script, f"{server}/").returncode == 0
    assert call(script, f"{server}/", '"dag_processor":{"status":"healthy"').returncode == 0
    for words in (
        (f"{server}/", '"triggerer":{"status":"healthy"'),
        (f"{server}/down",),
        (f"http://127.0.0.1:{free_port()}/",),
    ):
        assert call(script, *words).returncode != 0, words


@pytest.fixture
def airflow(airflow_database: Path, tmp_path: Path) -> Airflow:
    return with_database(airflow_home(tmp_path, ()), airflow_database)


@pytest.mark.extended
def test_the_health_checks_of_airflows_services(airflow: Airflow, tmp_path: Path) -> None:
    port, health_port = free_port(), free_port()
    api = f"http://127.0.0.1:{port}"
    environ = {
        **airflow.environ,
        **{
            name: value
            for name, value in SERVICES["scheduler"]["environment"].items()
            if name == "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK"
        },
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(health_port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{api}/execution/",
        "AIRFLOW__API_AUTH__JWT_SECRET": "only for this test" * 4,
        "AIRFLOW__API__WORKERS": "1",
    }
    program = str(Path(sys.executable).with_name("airflow"))
    checks = {
        "apiserver": health("apiserver", **{"localhost:8080": api}),
        "scheduler": health("scheduler", **{"localhost:8974": f"http://127.0.0.1:{health_port}"}),
        "dag-processor": health("dag-processor", **{"apiserver:8080": api}),
        "triggerer": health("triggerer", **{"apiserver:8080": api}),
    }
    for name, check in checks.items():
        assert call(*check).returncode != 0, name
    with ExitStack() as running:
        running.enter_context(process([program, "api-server", "--port", str(port)], environ, tmp_path))
        until_healthy(checks["apiserver"])
        # Nobody has ever run the others.
        assert [name for name, check in checks.items() if call(*check).returncode == 0] == ["apiserver"]
        for name in ("scheduler", "dag-processor", "triggerer"):
            command = SERVICES[name]["command"]
            running.enter_context(process([program, *command[1:]], environ, tmp_path))
        for check in checks.values():
            until_healthy(check)


@pytest.mark.extended
def test_the_health_checks_of_spark(tmp_path: Path) -> None:
    with standalone(tmp_path, workers=1) as cluster:
        at = urlsplit(cluster.status_url).netloc
        until_healthy(health("spark-master", **{"spark-master:8080": f"http://{at}"}))
        (worker,) = cluster.status()["workers"]
        check = health("spark-worker", **{"spark-worker:8081": worker["webuiaddress"]})
        until_healthy([word.replace("spark://spark-master:7077", cluster.master) for word in check])
        assert call(*check).returncode != 0, "a worker of another master is not healthy"


def test_the_health_check_of_postgres(postgres: PostgresServer) -> None:
    words = SERVICES["postgres"]["healthcheck"]["test"][1:]
    command = [_program(words[0]), *words[1:], "--host", "127.0.0.1", "--port"]
    assert call(*command, str(postgres.port), PGPASSWORD=PASSWORD).returncode == 0
    assert call(*command, str(free_port())).returncode != 0


def test_the_store_has_its_first_bucket_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    at = f"http://127.0.0.1:{port}"
    told = {"AWS_ACCESS_KEY_ID": "our-own", "AWS_SECRET_ACCESS_KEY": "our-own-secret", "AWS_REGION": "eu-central-1"}
    service = SERVICES["store"]
    given = {
        name: re.sub(r"\$\{(\w+):-[^}]*\}", lambda m: told[m[1]], value)
        for name, value in service["environment"].items()
    }
    (tmp_path / "data").mkdir()
    places = {":7070": f"127.0.0.1:{port}", "/data": str(tmp_path / "data")}
    arguments = [places.get(word, word) for word in service["command"]]
    check = [word.replace("http://127.0.0.1:7070", at) for word in service["healthcheck"]["test"][1:]]
    assert call(*check).returncode != 0
    with process([str(go_program(_MODULE, _VERSION)), *arguments], {**os.environ, **given}, tmp_path):
        until_healthy(check)
        bucket = SERVICES["first-bucket"]["command"]
        for printed in ("bucket lake made", "bucket lake is there"):
            environ = {
                **told,
                "AWS_DEFAULT_REGION": told["AWS_REGION"],
                "AWS_ENDPOINT_URL": at,
                "NIGHTKEEP_BUCKET": "lake",
            }
            done = call(sys.executable, str(ROOT / bucket[1]), **environ)
            assert (done.returncode, done.stdout.strip()) == (0, printed), done.stderr
        for name, value in {**told, "AWS_ENDPOINT_URL": at}.items():
            monkeypatch.setenv(name, value)
        assert try_reports("s3://lake/reports").status is Readiness.PASSED


@pytest.mark.extended
def test_housekeeping_removes_what_is_old_alone(airflow: Airflow, tmp_path: Path) -> None:
    logs, old = tmp_path / "logs", time.time() - 31 * 24 * 60 * 60
    for name in ("old/run/1.log", "new/run/1.log"):
        (logs / name).parent.mkdir(parents=True)
        (logs / name).write_text("a line")
    os.utime(logs / "old/run/1.log", (old, old))
    row = "insert into log (dttm, event) values (datetime('now', ?), ?)"
    for age in ("-31 days", "-1 days"):
        airflow.query(row, age, f"nightkeep {age}")
    done = tmp_path / "done"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**airflow.environ, "PATH": path, "NIGHTKEEP_KEEP_DAYS": "30"}
    with process(["sh", str(ROOT / "docker/housekeeping.sh"), str(done), "600"], environ, tmp_path) as running:
        deadline = time.monotonic() + SECONDS
        while not done.exists() and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert done.exists()
        check = SERVICES["housekeeping"]["healthcheck"]["test"][1].replace("/tmp/housekeeping", str(done))
        assert call("sh", "-c", check).returncode == 0
        os.utime(done, (old, old))
        assert call("sh", "-c", check).returncode != 0
        begun = time.monotonic()
        running.terminate()
        running.wait(20)
        assert time.monotonic() - begun < 5
    left = [path.relative_to(logs).as_posix() for path in logs.rglob("*") if path.is_file()]
    assert "new/run/1.log" in left and "old/run/1.log" not in left and not (logs / "old").exists()
    assert airflow.query("select event from log where event like 'nightkeep %'") == [("nightkeep -1 days",)]
