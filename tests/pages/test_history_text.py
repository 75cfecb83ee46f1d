"""The text of a history: a paragraph for each run, in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from nightkeep.api.chosen_history import parse_choice
from nightkeep.errors import UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.pages import history_text
from nightkeep.records import CheckStatus, Expectations, RunDocument

NOW = datetime(2026, 11, 27, 8, 0, tzinfo=UTC)


def document(
    table: str,
    night: int,
    outcome: Outcome = Outcome.UNCHANGED,
    *,
    operation: Operation = Operation.OPTIMIZE,
    reason: str | None = None,
    versions: tuple[int, int] | None = None,
    check: CheckStatus = CheckStatus.NOT_RUN,
) -> RunDocument:
    at = NOW - timedelta(days=night, hours=6)
    return RunDocument(
        run_id=f"night-{night}:{table}",
        table=table,
        format="delta",
        operation=operation,
        outcome=outcome,
        reason=reason,
        started_at=at,
        finished_at=at + timedelta(minutes=1),
        base_version=None if versions is None else versions[0],
        committed_version=None if versions is None else versions[1],
        expectations=Expectations(check),
    )


NIGHTS = (
    document("shop.orders", 9),
    document("shop.clicks", 9),
    document("shop.orders", 8),
    document("shop.orders", 7),
    document("shop.orders", 2, Outcome.VERIFIED, versions=(12, 13)),
    document("shop.clicks", 2, Outcome.FAILED, reason="no answer " * 60),
    document("shop.events", 2),
    document("shop.orders", 1, Outcome.VERIFIED, versions=(13, 14), check=CheckStatus.ERRORED),
    document("shop.events", 0, Outcome.VERIFIED, versions=(1244682011754340674, 5223682011754340675)),
    document("shop.events", 0, operation=Operation.SWEEP),
)


def test_runs_with_nothing_to_do_share_a_line_and_unchanged_tables_are_counted() -> None:
    lines = history_text(NIGHTS).splitlines()
    assert lines[:4] == [
        "3 runs with nothing to do",
        "    2026-11-18 02:00 to 2026-11-20 02:00, the last one night-7",
        "2026-11-25 02:00  night-2, 1 unchanged",
        "  shop.orders  optimize  verified  12 -> 13  0.0 s",
    ]
    assert lines[-1].startswith("10 runs on 3 tables: 1 failed, 3 verified, 6 unchanged.")


def test_it_fits_80_columns_and_breaks_no_name() -> None:
    text = history_text(NIGHTS)
    assert max(map(len, text.splitlines())) <= 80
    assert "    version 1244682011754340674 -> 5223682011754340675" in text.splitlines()
    long = document("a" * 90, 0, Outcome.FAILED, reason=f"expected {'b' * 90}, found none")
    assert "a" * 90 in history_text([long]) and "b" * 90 in history_text([long])


def test_no_document_is_nothing() -> None:
    assert history_text([]).strip() == "0 tables: nothing. 0 rows proven."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(10)),
        ({"since": "3d"}, range(4, 10)),
        ({"since": "2026-11-26"}, range(7, 10)),
        ({"last": 2}, range(7, 10)),
        ({"failed": True}, (5, 7)),
        ({"failed": True, "last": 1}, (7,)),
        ({"operation": "sweep"}, (9,)),
    ],
)
def test_what_is_asked_for_is_chosen(options: dict[str, object], expected: Sequence[int]) -> None:
    asked = {"since": None, "last": None, "operation": None, "failed": False, **options}
    chosen = parse_choice(**asked, now=NOW).of(NIGHTS)  # type: ignore[arg-type]
    assert chosen == tuple(NIGHTS[place] for place in expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"since": "yesterday"},
            "--since: expected a date such as 2026-11-20, or an age such as 7d, found 'yesterday'",
        ),
        ({"since": "999999999d"}, "--since: expected a date"),
        ({"last": 0}, "--last: expected a number of runs of at least 1, found 0"),
        ({"operation": "vacuum"}, "--operation: expected one of upgrade, .*, found 'vacuum'"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    asked = {"since": None, "last": None, "operation": None, "failed": False, **options}
    with pytest.raises(UsageError, match=message):
        parse_choice(**asked, now=NOW)  # type: ignore[arg-type]
