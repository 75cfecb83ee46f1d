"""The ledger: what documents say of predictions, kept line by line, and read whatever happened to the file."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightkeep.model import Operation, Outcome, UnitKey
from nightkeep.records import (
    CheckStatus,
    CommitResult,
    Expectations,
    Measured,
    Metrics,
    PlanSection,
    PlanUnit,
    RunDocument,
    UnitEstimate,
    measured_of_format,
    measured_of_table,
    read_history,
    store_or_note,
)
from nightkeep.records.ledger import LEDGER, measured

NOW = datetime(2026, 1, 2, tzinfo=UTC)
UNIT = PlanUnit("", None, "small files", ("a", "b", "c"), 300, UnitEstimate(300, 250, 1, "fewer", -2, -50))
DONE = RunDocument(
    run_id="monday",
    table="Shop.orders",
    format="delta",
    operation=Operation.OPTIMIZE,
    outcome=Outcome.VERIFIED,
    base_version=4,
    committed_version=5,
    commits=(CommitResult(5, 4, (UnitKey(""),)),),
    plan=PlanSection(4, (UNIT,)),
    expectations=Expectations(CheckStatus.PASSED),
    started_at=NOW,
    finished_at=NOW,
    metrics=Metrics(files_before=9, files_after=7, bytes_before=900, bytes_after=800, seconds={"plan": 1, "check": 2}),
)
FOUND = Measured(
    table="Shop.orders",
    operation=Operation.OPTIMIZE,
    run_id="monday",
    units=1,
    reads=300,
    new_files=1,
    new_bytes=250,
    more_files=-2,
    more_bytes=-50,
    files=-2,
    bytes=-100,
    seconds=3.0,
)


def of_table(reports: Path) -> tuple[Measured, ...]:
    return measured_of_table(reports, "Shop.orders", Operation.OPTIMIZE)


def test_a_document_states_what_was_expected_and_measured() -> None:
    assert measured(DONE) == FOUND
    waits = replace(DONE, expectations=Expectations())
    assert measured(waits) == replace(FOUND, seconds=None)


@pytest.mark.parametrize(
    "changed",
    [
        {"outcome": Outcome.CONFLICTED},
        {"metrics": replace(DONE.metrics, files_after=None)},
        {"plan": PlanSection()},
        {"plan": PlanSection(4, (replace(UNIT, estimate=None),))},
        {"plan": PlanSection(4, (UNIT, replace(UNIT, estimate=UnitEstimate(300, 250, 1, "of an older release"))))},
        {"commits": (CommitResult(6, 5, (UnitKey(""),)),)},
        {"commits": (*DONE.commits, CommitResult(7, 6, (UnitKey(""),)))},
        {"commits": ()},
    ],
)
def test_a_document_that_measured_nothing_of_its_own_states_nothing(changed: dict[str, object]) -> None:
    assert measured(replace(DONE, **changed)) is None  # type: ignore[arg-type]


def test_what_is_stored_is_read_for_the_table_and_for_the_format(tmp_path: Path) -> None:
    store_or_note(replace(DONE, expectations=Expectations()), tmp_path)
    store_or_note(DONE, tmp_path)
    store_or_note(replace(DONE, table="other"), tmp_path)
    store_or_note(replace(DONE, run_id="failed", outcome=Outcome.FAILED), tmp_path)
    assert of_table(tmp_path) == (FOUND,)
    found = measured_of_format(tmp_path, "delta", Operation.OPTIMIZE)
    assert [each.table for each in found] == ["Shop.orders", "other"]
    assert measured_of_format(tmp_path, "paimon", Operation.OPTIMIZE) == ()
    assert measured_of_table(tmp_path, "Shop.orders", Operation.UPGRADE) == ()
    history = read_history(tmp_path)
    assert len(history.documents) == 3 and not history.unreadable


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    store_or_note(DONE, tmp_path)
    (path,) = (tmp_path / LEDGER / "tables").iterdir()
    whole = path.read_bytes()
    numbers = [whole.replace(b"300", wrong) for wrong in (b"NaN", b"9" * 30, b"true", b'"300"')]
    wrong = [b"{}", b"[" * 9999, b"\xff\xfe", whole[:40], *numbers]
    path.write_bytes(b"\n".join([*wrong, whole]))
    assert of_table(tmp_path) == (FOUND,)


def test_a_ledger_stays_small_and_keeps_the_newest(tmp_path: Path) -> None:
    for number in range(600):
        store_or_note(replace(DONE, run_id=f"run {number}"), tmp_path)
    (path,) = (tmp_path / LEDGER / "tables").iterdir()
    assert path.stat().st_size <= 64 << 10
    found = of_table(tmp_path)
    assert [each.run_id for each in found] == [f"run {n}" for n in range(600 - len(found), 600)] and len(found) > 100


def test_a_ledger_that_cannot_be_written_costs_no_run(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text("in the way")
    document, path = store_or_note(DONE, tmp_path)
    assert document == DONE and path is not None
    assert of_table(tmp_path) == ()
