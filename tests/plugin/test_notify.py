"""Messages of a real Airflow's runs: webhooks, connections and notifiers, to receivers on loopback."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.airflow_home import Airflow, DagRun, airflow_home, finished, with_database, without_jvm
from tests.support.http_receiver import HttpReceiver, http_receiver

from nightkeep.model import Outcome

TABLES = {f"t.{outcome}": [str(outcome)] for outcome in Outcome} | {"t.bad_check": ["mismatch!"]}


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs to hand in a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 loopback\r\n")
        while line := self.rfile.readline().strip().upper():
            if line == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (text := self.rfile.readline()) != b".\r\n":
                    lines.append(text)
                self.server.mails.append(b"".join(lines).decode())  # type: ignore[attr-defined]
            if line == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            self.wfile.write(b"250 fine\r\n")


@contextmanager
def mail_server() -> Iterator[Any]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)
    server.daemon_threads = True
    server.mails = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def asked(airflow: Airflow, **receivers: object) -> Airflow:
    """The same, with `on:` in its policy."""
    place = airflow.home / "tables.yaml"
    text = place.read_text()
    place.write_text(text.replace("defaults: {", f"defaults: {{on: {json.dumps(receivers)}, "))
    return airflow


@pytest.fixture
def airflow(airflow_database: Path, tmp_path: Path) -> Airflow:
    return with_database(airflow_home(tmp_path, TABLES), airflow_database)


def night(airflow: Airflow, **variables: str) -> DagRun:
    airflow.script(care=TABLES)
    done = without_jvm(airflow).call("airflow", "dags", "test", "nightly", "2026-11-20", **variables)
    return finished(airflow, "nightly", done.stdout + done.stderr)


NOTIFIER = """
from airflow.sdk import BaseNotifier

class Noting(BaseNotifier):
    template_fields = ("message", "place")

    def __init__(self, place, message="default", plain=None, **kwargs):
        super().__init__(**kwargs)
        self.place, self.message = place, message

    def notify(self, context):
        assert "conn" not in context and "var" not in context
        with open(self.place, "a") as sink:
            sink.write(self.message.splitlines()[0] + "\\n")

class Breaking(Noting):
    def notify(self, context):
        raise RuntimeError("password=0123456789abcdef")
"""


@pytest.mark.slow
def test_a_night_with_every_outcome_is_heard_of_by_everybody_who_asked(airflow: Airflow) -> None:
    (airflow.home / "noting.py").write_text(NOTIFIER)
    noted = airflow.home / "noted.txt"
    with http_receiver() as webhook, http_receiver() as connection, mail_server() as mails:
        everything = {str(outcome): [{"webhook": "${HOOK}"}] for outcome in Outcome}
        mismatch = [
            *everything["mismatch"],
            "lake_http",
            "lake_mail",
            "lake_unknown",
            {"notifier": "noting.Noting", "kwargs": {"place": "${NOTED}"}},
            {"notifier": "noting.Breaking", "kwargs": {"place": "x"}},
            {"notifier": "pathlib.Path", "kwargs": {}},
            {"notifier": "airflow.providers.nowhere.Notifier"},
        ]
        asked(airflow, **{**everything, "mismatch": mismatch, "hold": [{"webhook": "${HOOK}"}]})
        http = {
            "conn_type": "http",
            "host": connection.url,
            "login": "u",
            "password": "p4ssw0rd",
            "extra": {"X-A": "b"},
        }
        mail = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": mails.server_address[1],
            "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "n@example.com", "to": "t@example.com"},
        }
        variables = {
            "HOOK": webhook.url,
            "NOTED": str(noted),
            "AIRFLOW_CONN_LAKE_HTTP": json.dumps(http),
            "AIRFLOW_CONN_LAKE_MAIL": json.dumps(mail),
            "AIRFLOW_CONN_LAKE_UNKNOWN": json.dumps({"conn_type": "ftp", "host": "h"}),
            "PYTHONPATH": f"{airflow.environ['PYTHONPATH']}:{airflow.home}",
            "AIRFLOW__API__BASE_URL": "https://airflow.example.com",
        }
        run = night(airflow, **variables)
    expected = {(str(outcome), f"t.{outcome}") for outcome in Outcome} | {("mismatch", "t.bad_check")}
    assert sorted(webhook.heard) == sorted(expected)
    (message,) = [each for each in webhook.messages if each["events"][0]["table"] == "t.failed"]
    assert message["link"].startswith("https://airflow.example.com/nightkeep/?dag_id=nightly&run_id=")
    assert "failed on purpose" in message["text"] and message["events"][0]["document"]
    assert sorted(connection.heard) == [("mismatch", "t.bad_check"), ("mismatch", "t.mismatch")]
    assert connection.requests[0][1]["X-A"] == "b" and connection.requests[0][1]["Authorization"].startswith("Basic ")
    assert len(mails.mails) == 2 and "Subject: Nightkeep: t.bad_check: mismatch" in "".join(mails.mails)
    assert sorted(noted.read_text().splitlines()) == [
        "Nightkeep: t.bad_check: mismatch",
        "Nightkeep: t.mismatch: mismatch",
    ]
    for sentence in (
        "expected a connection of type discord, slackwebhook, smtp, http, found ftp",
        "expected a notifier of Airflow's, found something else",
        "No module named 'airflow.providers.nowhere'",
        "notifier Breaking",
    ):
        assert sentence in run.log, run.log
    assert "secret-part" not in run.log and "p4ssw0rd" not in run.log
    assert run.tasks["notify", -1] == ("success", 1) and run.tasks["page", -1] == ("success", 1)


def settled_again(airflow: Airflow, receiver: HttpReceiver, *, twice: bool) -> list[tuple[str, str | None]]:
    done = airflow.python(
        f"""
import json, types
from nightkeep_airflow.tasks import notify
run = types.SimpleNamespace(dag_id="nightly", run_id="manual")
entry = dict(table="t.failed", outcome="failed", reason="failed on purpose", documents=[])
for _ in range({2 if twice else 1}):
    notify.function([[entry]], "tables.yaml", "reports", dag_run=run)
print(json.dumps(True))
"""
    )
    assert done
    return receiver.heard


@pytest.mark.slow
def test_a_task_that_comes_again_sends_nothing_twice(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        airflow = asked(airflow_home(tmp_path, TABLES), failed=[{"webhook": receiver.url}])
        assert settled_again(airflow, receiver, twice=True) == [("failed", "t.failed")]
        assert settled_again(airflow, receiver, twice=False) == [("failed", "t.failed")]


@pytest.mark.slow
def test_receivers_that_are_dead_or_hang_or_break_fail_no_run(airflow: Airflow) -> None:
    with http_receiver(500) as broken, http_receiver(None) as hangs:
        dead = {"webhook": "http://127.0.0.1:9/x"}
        asked(airflow, unchanged=[{"webhook": broken.url}, {"webhook": hangs.url}, dead, "no_such_connection"])
        airflow.script(care={table: ["unchanged"] for table in TABLES})
        done = without_jvm(airflow).call("airflow", "dags", "test", "nightly", "2026-11-20")
        run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert (run.state, run.tasks["notify", -1]) == ("success", ("success", 1)), run.log
    # One by one after an answer, and no other one after none.
    assert (len(broken.requests), len(hangs.requests)) == (len(TABLES), 1)


@pytest.mark.slow
def test_a_notify_that_fails_leaves_the_run_and_its_page_as_they_are(airflow: Airflow) -> None:
    airflow.script(care={table: ["unchanged"] for table in TABLES})
    (airflow.home / "reports").mkdir()
    (airflow.home / "sitecustomize.py").write_text(
        "import nightkeep_airflow.notices as n\n"
        "def fails(*_, **__): raise OSError('no answer')\n"
        "n.notify_of_tables = fails\n"
    )
    done = without_jvm(airflow).call(
        "airflow", "dags", "test", "nightly", "2026-11-20", PYTHONPATH=f"{airflow.environ['PYTHONPATH']}:{airflow.home}"
    )
    run = finished(airflow, "nightly", done.stdout + done.stderr)
    assert run.tasks["notify", -1][0] in ("failed", "up_for_retry"), run.log
    assert (run.state, run.tasks["page", -1][0]) == ("success", "success")


@pytest.mark.slow
def test_a_deadline_is_heard_of_once(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        airflow = asked(airflow_home(tmp_path, TABLES), late=[{"webhook": receiver.url}])
        found = airflow.python(
            """
import json, os
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk._shared.module_loading import import_string
dag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]).dags["nightly"]
callback = dag.deadline[0].callback
context = {
    "dag_run": {"dag_id": "nightly", "run_id": "scheduled__2026-11-20"},
    "deadline": {"id": "1", "deadline_time": "2026-11-20T03:30:00+00:00"},
}
for _ in range(2):
    import_string(callback.path)(context=context, **callback.kwargs)
print(json.dumps(callback.path))
""",
            NIGHTKEEP_DEADLINE_MINUTES="90",
        )
    assert found == "nightkeep_airflow.alerts.late"
    (message,) = receiver.messages
    assert message["title"] == "Nightkeep: the run: late"
    assert "run scheduled__2026-11-20 of nightly has not ended by 2026-11-20T03:30:00+00:00" in message["text"]
    assert yaml.safe_load((airflow.home / "tables.yaml").read_text())["version"] == 1


@pytest.mark.slow
def test_a_run_emits_its_figures_by_statsd(airflow: Airflow) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.5)
        night(
            airflow,
            AIRFLOW__METRICS__STATSD_ON="True",
            AIRFLOW__METRICS__STATSD_HOST="127.0.0.1",
            AIRFLOW__METRICS__STATSD_PORT=str(receiver.getsockname()[1]),
        )
        packets = list[str]()
        with suppress(TimeoutError):
            while True:
                packets += receiver.recv(65536).decode().splitlines()
    ours = dict(
        each.removeprefix("airflow.nightkeep.nightly.").split(":") for each in packets if "nightkeep.nightly" in each
    )
    assert 0 < float(ours.pop("lag_seconds").removesuffix("|g")) < 600
    assert ours == {
        **{f"tables.{outcome}": "1|g" for outcome in Outcome},
        "tables.mismatch": "2|g",
        **dict.fromkeys(("rows_proven", "bytes_before", "bytes_after", "holds"), "0|g"),
    }


def lineage(receiver: HttpReceiver) -> list[tuple[str, str, str]]:
    """Our events: their types, and namespaces and names of their jobs. The provider sends others."""
    events = [json.loads(body) for _, _, body in receiver.requests]
    ours = [event for event in events if event["producer"].startswith("urn:nightkeep:")]
    return [(event["eventType"], event["job"]["namespace"], event["job"]["name"]) for event in ours]


@pytest.mark.slow
def test_published_versions_are_events_of_open_lineage(airflow: Airflow) -> None:
    with http_receiver() as receiver:
        night(airflow, OPENLINEAGE_URL=f"http://127.0.0.1:{receiver.port}")
    assert sorted(lineage(receiver)) == [
        ("COMPLETE", "nightkeep", "t.verified.upgrade"),
        ("FAIL", "nightkeep", "t.bad_check.upgrade"),
        ("START", "nightkeep", "t.bad_check.upgrade"),
        ("START", "nightkeep", "t.verified.upgrade"),
    ]


@pytest.mark.slow
@pytest.mark.extended
def test_the_provider_sends_them_by_its_transport(airflow: Airflow) -> None:
    packages = airflow.home / "provider"
    wanted = ("apache-airflow-providers-openlineage", "openlineage-integration-common", "sqlparse")
    install = (os.environ["NIGHTKEEP_UV"], "pip", "install", "-q", "--no-deps", "--target", str(packages), *wanted)
    subprocess.run(install, check=True)
    with http_receiver() as receiver:
        night(
            airflow,
            PYTHONPATH=f"{airflow.environ['PYTHONPATH']}:{packages}",
            AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps({"type": "http", "url": f"http://127.0.0.1:{receiver.port}"}),
            AIRFLOW__OPENLINEAGE__NAMESPACE="team",
        )
    assert len(receiver.requests) > 4
    assert ("COMPLETE", "team", "t.verified.upgrade") in lineage(receiver) and len(lineage(receiver)) == 4
