"""Documents of runs -> events, and events -> messages."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from nightkeep.model import Operation, Outcome
from nightkeep.model.receivers import EventKind
from nightkeep.notifications.events import Event, documents_event, hold_event, late_event
from nightkeep.notifications.messages import messages_of
from nightkeep.records import Hold, RunDocument

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)
BACK = "CALL sys.rollback_to('shop.orders', 6)"


def document(outcome: Outcome, operation: Operation = Operation.OPTIMIZE, **more: object) -> RunDocument:
    plain = RunDocument(
        run_id="nightly-1:shop.orders",
        table="shop.orders",
        format="paimon",
        operation=operation,
        outcome=outcome,
        reason=f"{outcome} on purpose",
        started_at=NOW,
        finished_at=NOW,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_an_event(outcome: Outcome) -> None:
    event = documents_event([("a.json", document(outcome))])
    assert (event.kind.value, event.table, event.reason) == (
        outcome.value,
        "shop.orders",
        f"optimize: {outcome} on purpose",
    )
    assert {each.value for each in Outcome} | {"hold", "late"} == {each.value for each in EventKind}


def test_a_run_of_several_operations_is_one_event_the_worst() -> None:
    documents = [
        ("a.json", document(Outcome.VERIFIED, Operation.UPGRADE, committed_version=6)),
        ("b.json", document(Outcome.MISMATCH, committed_version=7, go_back=BACK)),
    ]
    event = documents_event(documents)
    assert (event.kind, event.operation, event.version) == (EventKind.MISMATCH, "optimize", 7)
    assert (event.go_back, event.document) == (BACK, "b.json")
    (message,) = messages_of([event], "https://airflow/nightkeep/?run_id=1")
    assert message.title == "Nightkeep: shop.orders: mismatch"
    assert message.text.splitlines() == [
        "Nightkeep: shop.orders: mismatch",
        "shop.orders: optimize: mismatch on purpose",
        "version 7 is published",
        f"to go back: {BACK}",
        "report: https://airflow/nightkeep/?run_id=1",
    ]


def test_a_hold_is_the_event_of_the_run_that_put_it_and_names_the_command_that_ends_it() -> None:
    hold = Hold(table="a table", run_id="nightly-0:a", operation=Operation.OPTIMIZE, since=NOW, reason="rows differ")
    event = hold_event(hold)
    assert event.key == "hold nightly-0:a a table"
    (message,) = messages_of([event], None)
    assert message.title == "Nightkeep: a table: on hold"
    assert "nightkeep release 'a table'" in message.text


def test_the_worst_events_come_first_and_many_of_a_kind_are_one_message() -> None:
    failed = [Event(kind=EventKind.FAILED, run_id="1", table=f"t{n}", reason="no catalog") for n in range(200)]
    few = [Event(kind=EventKind.VERIFIED, run_id="1", table=f"v{n}") for n in range(10)]
    messages = [*messages_of([*few, *failed, late_event("1", "late")], None)]
    assert [len(each.events) for each in messages] == [200, 1, *[1] * 10]
    assert all(a.events[0].rank <= b.events[0].rank for a, b in pairwise(messages))
    many = messages[0]
    assert many.title == "Nightkeep: 200 tables: failed" and many.text.endswith("and 150 more")
    events = many.to_json()["events"]
    assert isinstance(events, list) and len(events) == 200


def test_no_secret_is_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcdef-very-secret")
    reason = "cannot read s3://key:abcdef-very-secret@bucket/x?sig=0123456789 <b>{{ conn.x }}</b>"
    event = Event(kind=EventKind.FAILED, run_id="1", table="t", reason=reason, go_back="x abcdef-very-secret")
    (message,) = messages_of([event], None)
    for text in (message.title, message.text, message.html, json.dumps(message.to_json())):
        assert "abcdef" not in text and "0123456789" not in text
    assert "<b>" not in message.html and "&lt;b&gt;" in message.html
