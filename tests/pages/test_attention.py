"""What needs a person: what is listed, what is not, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.records.test_documents import NIGHT

from nightkeep.model import Operation, Outcome
from nightkeep.pages import attention_of
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, Hold, Metrics, RunDocument
from nightkeep.records.document import Predicted
from nightkeep.records.index_rows import brief_document, row_of

UNMET = ExpectationSummary("not null", CheckStatus.FAILED, "critical: 3 rows", extra={"severity": "critical"})
MINOR = replace(UNMET, extra={"severity": "warning"})


def run(night: int, outcome: Outcome, table: str = "shop.orders", **changes: Any) -> RunDocument:
    start = NIGHT + timedelta(days=night)
    published = outcome is Outcome.VERIFIED
    made = RunDocument(
        run_id=f"night-{night}:{table}",
        table=table,
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=outcome,
        reason=None if published else f"because of night {night}",
        committed_version=night if published else None,
        expectations=Expectations(CheckStatus.PASSED if published else CheckStatus.NOT_RUN),
        started_at=start,
        finished_at=start + timedelta(seconds=9),
    )
    return replace(made, **changes)


def held(document: RunDocument) -> Hold:
    return Hold(
        table=document.table,
        run_id=document.run_id,
        operation=document.operation,
        since=document.finished_at,
        reason="3 rows are missing",
        committed_version=7,
        go_back="RESTORE TABLE t TO VERSION AS OF 6",
    )


def words(*history: RunDocument, **holds: Hold | None) -> Sequence[str]:
    return [f"{each.word} {each.table}" for each in attention_of(history, holds)]


@pytest.mark.parametrize("outcome", [Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.REFUSED])
def test_what_ended_well_or_was_never_maintained_needs_nobody(outcome: Outcome) -> None:
    assert words(run(1, outcome), run(2, outcome)) == []
    assert not attention_of([], {})


def test_a_hold_comes_first_with_the_statement_to_go_back_and_the_command_to_release() -> None:
    bad = run(2, Outcome.MISMATCH, "t", committed_version=7)
    found = attention_of([run(2, Outcome.FAILED, "a"), bad], {"t": held(bad)})
    assert [each.word for each in found] == ["on hold", "failed"]
    assert found[0].statements == ("RESTORE TABLE t TO VERSION AS OF 6", "nightkeep release t")
    assert "3 rows are missing" in found[0].sentence and "Version 7 is published." in found[0].sentence
    assert found[0].document is bad


def test_a_hold_that_cannot_be_read_counts_and_one_without_documents_is_listed() -> None:
    assert words(t=None) == ["on hold t"]


def test_a_later_run_that_ends_well_mends_a_failure() -> None:
    assert words(run(1, Outcome.FAILED), run(2, Outcome.UNCHANGED)) == []
    # Of another operation it mends nothing.
    swept = run(2, Outcome.VERIFIED, operation=Operation.SWEEP)
    assert words(run(1, Outcome.FAILED), swept) == ["failed shop.orders"]


def test_a_failure_states_how_often_it_was_so_before() -> None:
    (found,) = attention_of([run(n, Outcome.FAILED) for n in range(4)], {})
    assert found.sentence == "optimize: because of night 3. So did the 3 runs before it."


def test_one_lost_race_is_planned_again_and_two_in_a_row_need_a_person() -> None:
    assert words(run(1, Outcome.CONFLICTED)) == []
    assert words(run(1, Outcome.CONFLICTED), run(2, Outcome.CONFLICTED)) == ["conflicted shop.orders"]


def test_a_table_that_is_refused_and_was_maintained_before() -> None:
    (found,) = attention_of([run(1, Outcome.UNCHANGED), run(2, Outcome.REFUSED)], {})
    assert found.word == "refused" and "it was maintained until" in found.sentence


@pytest.mark.parametrize(
    ("checked", "listed"),
    [
        (Expectations(CheckStatus.PASSED, (UNMET,)), ["expectations"]),
        (Expectations(CheckStatus.PASSED, (MINOR,)), []),
        (Expectations(CheckStatus.FAILED, (UNMET,)), ["expectations"]),
        (Expectations(CheckStatus.ERRORED, reason="no memory"), ["unchecked"]),
        (Expectations(CheckStatus.NOT_RUN), ["unchecked"]),
        (Expectations(CheckStatus.SKIPPED), []),
    ],
)
@pytest.mark.parametrize("of_index", [False, True])
def test_checks_that_need_a_person_in_documents_and_in_rows_of_the_index(
    checked: Expectations, listed: list[str], *, of_index: bool
) -> None:
    document = run(1, Outcome.VERIFIED, expectations=checked)
    if of_index:
        document = brief_document(row_of(document, 1))
    found = attention_of([document], {})
    assert [each.word for each in found] == listed
    if listed == ["unchecked"]:
        assert found[0].statements == ("nightkeep check --left shop.orders",)
    if checked.status is CheckStatus.PASSED and listed:
        assert "not null" in found[0].sentence and "not met before either" in found[0].sentence


@pytest.mark.parametrize("reason", ["outside its window 01:00-03:00", "budget: place 3 of 3"])
def test_a_table_that_is_left_out_three_times_in_a_row(reason: str) -> None:
    left = [run(n, Outcome.SKIPPED, reason=reason) for n in range(3)]
    assert words(*left) == ["left out shop.orders"]
    assert words(*left[1:]) == []
    assert words(*left[:2], run(2, Outcome.SKIPPED, reason="paused: on leave")) == []


@pytest.mark.parametrize(
    ("expected", "after", "listed"),
    [
        ((40, 1 << 20, 5.0), (4, 1 << 20, 5.0), True),
        ((8, 1 << 20, 5.0), (4, 1 << 20, 5.0), False),
        ((4, 64 << 20, 5.0), (4, 16 << 20, 5.0), True),
        ((4, 1 << 20, 5.0), (4, 1 << 20, 300.0), True),
        ((4, 1 << 20, 5.0), (4, 1 << 20, 30.0), False),
    ],
)
@pytest.mark.parametrize("of_index", [False, True])
def test_a_prediction_that_was_far_off(
    expected: tuple[int, int, float], after: tuple[int, int, float], *, listed: bool, of_index: bool
) -> None:
    files, size, took = after
    metrics = Metrics(files_after=files, bytes_after=size, seconds={"plan": took}, predicted=Predicted(*expected, "x"))
    document = run(1, Outcome.VERIFIED, metrics=metrics)
    if of_index:
        document = brief_document(row_of(document, 1))
    assert words(document) == (["far off shop.orders"] if listed else [])


def test_what_was_asked_by_hand_and_failed_is_listed_for_a_week() -> None:
    failed = run(1, Outcome.FAILED, operation=Operation.DELETE)
    assert words(failed, run(5, Outcome.UNCHANGED)) == ["failed shop.orders"]
    assert words(failed, run(12, Outcome.UNCHANGED)) == []
