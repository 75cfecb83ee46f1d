"""What receivers on loopback really get: each event once, whatever ends midway, and nothing that fails anybody else."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.http_receiver import http_receiver

from nightkeep.model import Operation, Outcome
from nightkeep.model.receivers import AirflowConnection, EventKind, Webhook
from nightkeep.notifications.events import Event
from nightkeep.notifications.messages import Message
from nightkeep.notifications.notices import notices_of
from nightkeep.notifications.sending import WEBHOOKS, Deliver, Notice, send
from nightkeep.records import RunDocument, hold

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)


def event(kind: EventKind = EventKind.MISMATCH, table: str = "shop.orders", run: str = "nightly-1") -> Event:
    return Event(kind=kind, run_id=f"{run}:{table}", table=table, reason="rows differ")


def marks(reports: Path) -> list[Mapping[str, object]]:
    return [json.loads(each.read_text()) for each in sorted((reports / "~sent").glob("*"))]


def test_each_event_is_sent_once_however_often_it_is_reported(tmp_path: Path) -> None:
    with http_receiver() as receiver:
        notices = [Notice(event(kind), [Webhook(receiver.url)]) for kind in (EventKind.MISMATCH, EventKind.HOLD)]
        for _ in range(3):
            send(notices, str(tmp_path))
        send([Notice(event(run="nightly-2"), [Webhook(receiver.url)])], str(tmp_path))
    assert receiver.heard == [("hold", "shop.orders"), ("mismatch", "shop.orders"), ("mismatch", "shop.orders")]
    assert [mark["ended"] for mark in marks(tmp_path)] == ["sent"] * 3
    # A webhook's URL is a secret, which no file beside the tables may have.
    assert "secret" not in json.dumps(marks(tmp_path))


def test_two_receivers_of_an_event_get_it_each(tmp_path: Path) -> None:
    with http_receiver() as one, http_receiver() as other:
        send([Notice(event(), [Webhook(one.url), Webhook(other.url), Webhook(one.url)])], str(tmp_path))
    assert (len(one.requests), len(other.requests)) == (1, 1)
    assert one.requests[0][1]["Content-Type"] == "application/json"


def test_a_receiver_that_is_not_there_gets_it_from_the_next_try(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    notices = [Notice(event(), [Webhook(f"http://127.0.0.1:{port}/T0000-secret-part-of-the-url")])]
    with caplog.at_level(logging.DEBUG, logger="nightkeep"):
        send(notices, str(tmp_path))
    assert "Connection refused" in caplog.text and "webhook 127.0.0.1" in caplog.text
    assert "secret" not in caplog.text and marks(tmp_path) == []
    with http_receiver() as receiver:
        send([Notice(event(), [Webhook(receiver.url)])], str(tmp_path))
    assert receiver.heard == [("mismatch", "shop.orders")]


@pytest.mark.parametrize("status", [500, 404, 302, 307])
def test_an_answer_that_is_no_success_is_logged_and_ends_the_event(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    with http_receiver(status) as receiver:
        notices = [Notice(event(table=table), [Webhook(receiver.url)]) for table in ("a", "b")]
        for _ in range(2):
            send(notices, str(tmp_path))
    assert receiver.heard == [("mismatch", "a"), ("mismatch", "b")]
    assert caplog.text.count(f"found {status}") == 2 and "secret" not in caplog.text
    assert [f"found {status}" in str(mark["ended"]) for mark in marks(tmp_path)] == [True, True]


def test_a_receiver_that_hangs_delays_no_other_and_not_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with http_receiver(None) as hangs, http_receiver() as receiver:
        began = time.monotonic()
        send([Notice(event(), [Webhook(hangs.url), Webhook(receiver.url)])], str(tmp_path), seconds=2)
        took = time.monotonic() - began
        assert receiver.heard == [("mismatch", "shop.orders")]
    assert 2 <= took < 4 and "1 receivers gave no answer within 2 s" in caplog.text


@pytest.mark.slow
def test_an_answer_is_waited_for_ten_seconds_and_nothing_more_is_sent_then(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with http_receiver(None) as hangs:
        send([Notice(event(table=table), [Webhook(hangs.url)]) for table in ("a", "b")], str(tmp_path))
    assert hangs.heard == [("mismatch", "a")] and "no answer in time" in caplog.text
    # It may have arrived. Of the other one nothing was sent, and the next try does it.
    assert [(mark["event"], mark["ended"]) for mark in marks(tmp_path)] == [
        ("mismatch nightly-1:a a", "failed: no answer in time")
    ]


CRASHING = """
import os, signal, sys
from nightkeep.model.receivers import EventKind, Webhook
from nightkeep.notifications.events import Event
from nightkeep.notifications.sending import Notice, send
from nightkeep.notifications.webhooks import post

def dies(receiver, message):
    if sys.argv[3] == "after":
        post(receiver, message)
    os.kill(os.getpid(), signal.SIGKILL)

event = Event(kind=EventKind.MISMATCH, run_id="nightly-1:t", table="t")
send([Notice(event, [Webhook(sys.argv[1])])], sys.argv[2], deliver={Webhook: dies})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "arrived"), [("before", 0), ("after", 1)])
def test_what_was_being_sent_at_a_kill_is_not_sent_again_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, when: str, arrived: int
) -> None:
    """At most once: a message may be lost at a kill between its mark and its answer, and none comes twice."""
    with http_receiver() as receiver:
        killed = subprocess.run(
            [sys.executable, "-c", CRASHING, receiver.url, str(tmp_path), when],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL and [mark["ended"] for mark in marks(tmp_path)] == [None]
        again = Event(kind=EventKind.MISMATCH, run_id="nightly-1:t", table="t")
        send([Notice(again, [Webhook(receiver.url)])], str(tmp_path))
    assert len(receiver.requests) == arrived
    assert "ended midway" in caplog.text and "secret" not in caplog.text


def test_a_store_that_takes_no_mark_gets_nothing_sent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "~sent").write_text("")
    with http_receiver() as receiver:
        send([Notice(event(), [Webhook(receiver.url)])], str(tmp_path))
    assert receiver.requests == [] and "cannot be marked as sent" in caplog.text


def test_a_variable_that_is_not_set_is_a_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    send([Notice(event(), [Webhook("${NIGHTKEEP_TEST_UNSET}/x")])], str(tmp_path))
    assert "webhook ${NIGHTKEEP_TEST_UNSET}" in caplog.text and "to be set" in caplog.text


def test_a_url_of_a_variable_is_a_secret_in_every_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as receiver:
        monkeypatch.setenv("NIGHTKEEP_TEST_HOOK", receiver.url)
        said = Event(kind=EventKind.FAILED, run_id="1", table="t", reason=f"who printed {receiver.url}?")
        send([Notice(said, [Webhook("${NIGHTKEEP_TEST_HOOK}")])], str(tmp_path))
    (message,) = receiver.messages
    assert "secret" not in json.dumps(message) and "who printed ***?" in message["text"]


def test_receivers_that_only_airflow_reaches_are_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with http_receiver() as receiver:
        asked = [AirflowConnection("alerts"), Webhook(receiver.url)]
        send([Notice(event(table="a"), asked), Notice(event(table="b"), asked)], str(tmp_path))
    assert len(receiver.requests) == 2
    own = [line for line in caplog.records if line.name.startswith("nightkeep.notifications")]
    assert [line.getMessage() for line in own] == [
        "notifications: connection alerts: only a run in Airflow sends to these; they get no message of this one"
    ]


def test_whatever_a_notifier_raises_fails_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("password=0123456789abcdef")

    deliver: Mapping[type, Deliver] = {**WEBHOOKS, AirflowConnection: breaks}
    with http_receiver() as receiver:
        send([Notice(event(), [AirflowConnection("c"), Webhook(receiver.url)])], str(tmp_path), deliver=deliver)
    assert len(receiver.requests) == 1
    assert "connection c" in caplog.text and "ZeroDivisionError" in caplog.text and "0123456789" not in caplog.text


def test_a_hold_is_heard_of_once_whichever_run_finds_it(tmp_path: Path) -> None:
    put = RunDocument(
        run_id="nightly-0:t",
        table="t",
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH,
        reason="rows differ",
        committed_version=7,
        go_back="RESTORE TABLE t TO VERSION AS OF 6",
        started_at=NOW,
        finished_at=NOW,
    )
    hold(tmp_path, "t", put)
    with http_receiver() as receiver:

        def asking(_: str, kind: EventKind) -> list[Webhook]:
            return [Webhook(receiver.url)] if kind is EventKind.HOLD else []

        for run in ("nightly-1", "nightly-2"):
            found = [event(EventKind.SKIPPED, table, run) for table in ("t", "another")]
            send(notices_of(found, asking, str(tmp_path)), str(tmp_path))
    assert receiver.heard == [("hold", "t")]
    (message,) = receiver.messages
    assert "to go back: RESTORE TABLE t TO VERSION AS OF 6" in message["text"]
    assert message["events"][0]["run_id"] == "nightly-0:t"


def test_a_message_has_what_a_receiver_needs(tmp_path: Path) -> None:
    got = list[Message]()
    send(
        [Notice(event(), [Webhook("http://h/x")])],
        str(tmp_path),
        link="https://airflow/nightkeep/?run_id=1",
        deliver={Webhook: lambda _, message: got.append(message)},
    )
    assert got[0].to_json() == {
        "title": "Nightkeep: shop.orders: mismatch",
        "text": "Nightkeep: shop.orders: mismatch\nshop.orders: rows differ\nreport: https://airflow/nightkeep/?run_id=1",
        "link": "https://airflow/nightkeep/?run_id=1",
        "events": [
            {
                "event": "mismatch",
                "run_id": "nightly-1:shop.orders",
                "table": "shop.orders",
                "reason": "rows differ",
                "operation": None,
                "version": None,
                "go_back": None,
                "document": None,
            }
        ],
    }
