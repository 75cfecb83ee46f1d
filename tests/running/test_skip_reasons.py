"""Why a table is left alone now: a hold, a hold that cannot be read, a window."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.formats.delta.runs import policy

from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import RunDocument, hold, release
from nightkeep.running.skip_reasons import skip_reason

NOON, NIGHT = (datetime(2026, 11, 1, hour, tzinfo=UTC) for hour in (12, 23))


@pytest.fixture
def table(tmp_path: Path) -> EffectivePolicy:
    return policy(tmp_path / "a table")


def document(table: EffectivePolicy) -> RunDocument:
    return RunDocument(
        run_id="run/1", table=table.address.name, format="delta", operation=Operation.OPTIMIZE,
        outcome=Outcome.MISMATCH, reason="rows differ", address=str(table.address), started_at=NOON, finished_at=NOON,
    )  # fmt: skip


def test_a_table_without_hold_and_window_is_not_left(table: EffectivePolicy, tmp_path: Path) -> None:
    assert skip_reason(table, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON) is None


def test_a_hold_says_whose_it_is_and_how_it_is_lifted(table: EffectivePolicy, tmp_path: Path) -> None:
    reports = str(tmp_path / "reports")
    hold(reports, table.address.name, document(table))
    said = skip_reason(table, Operation.OPTIMIZE, reports, NOON)
    assert said is not None and said.startswith("on hold since run run/1: rows differ; nightkeep release ")
    assert said.endswith("lifts it") and f"'{table.address.name}'" in said
    release(reports, table.address.name)
    assert skip_reason(table, Operation.OPTIMIZE, reports, NOON) is None


def test_a_hold_that_cannot_be_read_holds(table: EffectivePolicy, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    hold(str(reports), table.address.name, document(table))
    (marker,) = (path for path in reports.rglob("*") if path.is_file())
    marker.write_text("{")
    assert str(skip_reason(table, Operation.OPTIMIZE, str(reports), NOON)).startswith("on hold, why cannot be read: ")


def test_outside_its_window_a_table_is_left(table: EffectivePolicy, tmp_path: Path) -> None:
    nightly = policy(tmp_path / "a table", window="22:00-06:00 UTC")
    assert skip_reason(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NIGHT) is None
    assert str(skip_reason(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON)).startswith(
        "outside its window "
    )
    hold(str(tmp_path / "reports"), nightly.address.name, replace(document(nightly)))
    assert str(skip_reason(nightly, Operation.OPTIMIZE, str(tmp_path / "reports"), NOON)).startswith("on hold since ")


def test_an_operation_may_have_a_window_of_its_own(tmp_path: Path) -> None:
    mine, reports = policy(tmp_path / "a table", window={"sweep": "22:00-06:00 UTC"}), str(tmp_path / "reports")
    assert skip_reason(mine, Operation.OPTIMIZE, reports, NOON) is None
    assert skip_reason(mine, Operation.SWEEP, reports, NOON) == "outside its window 22:00-06:00 UTC"
    assert skip_reason(mine, Operation.SWEEP, reports, NIGHT) is None
