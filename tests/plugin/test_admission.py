"""What a DAG run was started with: parameters that nobody knows, and runs that start hours after their time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from nightkeep_airflow.admission import require_known, too_late

TWO = datetime(2026, 11, 20, 2, tzinfo=UTC)


@pytest.mark.parametrize("conf", [None, {}, {"table": "a"}, {"table": "a", "where": None}])
def test_parameters_that_are_known_are_let_through(conf: dict[str, Any] | None) -> None:
    require_known(conf, ("table", "where"))


@pytest.mark.parametrize(
    ("conf", "known", "message"),
    [
        ({"tabel": 1}, ("table", "where"), "expected table, where; found 'tabel'; did you mean table?"),
        ({"b": 1, "a": 2, "table": 3}, ("table",), "expected table; found 'a', 'b'"),
        ({"x": 1}, (), "expected none, as this DAG has no parameters; found 'x'"),
    ],
)
def test_a_parameter_that_is_not_known_is_named(conf: dict[str, Any], known: tuple[str, ...], message: str) -> None:
    with pytest.raises(AirflowFailException) as raised:
        require_known(conf, known)
    assert str(raised.value) == f"parameters: {message}"


@pytest.mark.parametrize(
    ("kind", "cleared", "hours", "late"),
    [
        ("scheduled", 0, 0.1, False),
        ("scheduled", 0, 3, False),
        ("scheduled", 0, 3.1, True),
        ("scheduled", None, 12, True),
        ("scheduled", 1, 12, False),
        ("manual", 0, 12, False),
        ("backfill", 0, 48, False),
        ("asset_triggered", 0, 12, False),
    ],
)
def test_a_scheduled_run_starts_in_time_or_not_at_all(kind: str, cleared: int | None, hours: float, late: bool) -> None:
    run = SimpleNamespace(run_type=kind, clear_number=cleared, run_after=TWO)
    said = too_late(run, now=TWO + timedelta(hours=hours), within=timedelta(hours=3))
    assert (said is not None) is late
    assert said is None or said.startswith("scheduled for 2026-11-20 02:00: expected to start within 3:00:00, found 2")
