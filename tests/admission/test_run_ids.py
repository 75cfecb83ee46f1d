"""A run id that comes again: with the same options a retry, with others a slip of the caller."""

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.upgrade import policy

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import require_same_options
from nightkeep.errors import BeingCreated, UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.policy import Overrides
from nightkeep.records import CheckStatus, Expectations, RunDocument, failure_outcome, store
from nightkeep.records.failure_outcomes import unjudged
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "events_input", tmp_path / "events_input"))


def run(table: Path, asked: Mapping[str, object], run_id: str = "run/1") -> RunDocument:
    order = Order(Operation.UPGRADE, run_id, str(table.parent / "reports"), asked=asked)
    document = run_operation(policy(table), order, mapper=lambda: inline)
    store(document, order.reports)
    return document


def test_a_retry_with_the_same_options_reports_the_same_commit(table: Path) -> None:
    first, again = (run(table, {"full": True}) for _ in range(2))
    assert (first.outcome, again.outcome) == (Outcome.VERIFIED, Outcome.VERIFIED)
    assert again.to_json() == first.to_json()
    assert first.to_json()["asked"] == {"full": True}


@pytest.mark.parametrize("asked", [{}, {"full": True, "where": "dt = 1"}, {"full": "True"}])
def test_other_options_are_no_retry(table: Path, asked: dict[str, object]) -> None:
    first = run(table, {"full": True})
    with pytest.raises(UsageError, match="run id 'run/1': expected the options of its first attempt, full = True"):
        run(table, asked)
    assert run(table, {"full": True}).to_json() == first.to_json()
    assert run(table, asked, "run/2").outcome is Outcome.UNCHANGED


def test_a_run_that_published_nothing_may_be_asked_otherwise(table: Path) -> None:
    run(table, {}, "run/1")
    assert run(table, {}, "run/2").outcome is Outcome.UNCHANGED
    assert run(table, {"full": True}, "run/2").outcome is Outcome.UNCHANGED


def test_options_of_the_work_belong_to_a_run_and_others_do_not() -> None:
    said = Overrides(where="a = 1", full=True, zorder="a,b", target_size="1MB", task_memory="2GB")
    assert said.asked() == {"where": "a = 1", "full": True, "zorder": "a,b", "target_size": "1MB"}
    assert Overrides().asked() == {}


def test_what_is_being_created_is_looked_for_again() -> None:
    failure = BeingCreated("t/branch/branch-dev/schema", "schema-<n> files of a branch", "none")
    assert failure_outcome(failure, "t") == (Outcome.CONFLICTED, f"{failure}; run again")


def ended(**facts: object) -> RunDocument:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return RunDocument(
        run_id="run/1",
        table="t",
        format="delta",
        operation=Operation.SWEEP,
        outcome=Outcome.FAILED,
        started_at=now,
        finished_at=now,
        **facts,
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("extra", "now", "same"),
    [
        ({}, {}, True),
        ({}, {"full": True}, False),
        ({"asked": {"full": True}}, {"full": True}, True),
        ({"asked": {"full": True}, "mode": "delete"}, {"mode": "delete"}, False),
        # Removals did not always store their options, only the mode.
        ({"mode": "delete"}, {"mode": "delete", "max_share": 0.5}, True),
        ({"mode": "delete"}, {"mode": "dry-run"}, False),
    ],
)
def test_rewrites_and_removals_compare_their_options_alike(
    extra: dict[str, object], now: dict[str, object], same: bool
) -> None:
    with nullcontext() if same else pytest.raises(UsageError, match="expected the options of its first attempt"):
        require_same_options(ended(extra=extra), now)


@pytest.mark.parametrize("status", CheckStatus)
def test_what_was_published_or_removed_waits_for_a_check(status: CheckStatus) -> None:
    left, checked = status in (CheckStatus.NOT_RUN, CheckStatus.ERRORED), Expectations(status)
    published, removed, listed = (
        ended(expectations=checked, **done)  # type: ignore[arg-type]
        for done in ({"committed_version": 3}, {"extra": {"changed": True}}, {"extra": {"changed": False}})
    )
    assert tuple(map(unjudged, (published, removed, listed))) == (left, left, False)
    # Only a published version is what a later `check` of the run looks for.
    assert (published.awaits_check, removed.awaits_check) == (left, False)
