"""What the check makes of a document: every version is asked about, the worst word counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.checking import on_spark
from nightkeep.checking.post_commit_check import check_after_commit
from nightkeep.model import Operation, Outcome, UnitKey
from nightkeep.model.check_values import CheckRequest
from nightkeep.policy import Check, EffectivePolicy, Settings
from nightkeep.records import CheckStatus, CommitResult, RunDocument, UnitResult, held
from nightkeep.records.check_report import CheckReport, Difference, ExpectationResult, UnitDifference

NIGHT = datetime(2026, 11, 21, 2, 0, 4, tzinfo=UTC)
ONE, TWO = UnitKey("day=1"), UnitKey("day=2")


class Checker:
    """Says of each version what it was told to say, and remembers what it was asked."""

    CheckRequest = CheckRequest

    def __init__(self, said: dict[int, CheckReport]) -> None:
        self.said, self.asked = said, list[CheckRequest]()

    def check(self, request: CheckRequest) -> CheckReport:
        self.asked.append(request)
        assert request.version is not None
        return self.said[request.version]


class Opinions:
    """One table in memory, and the opinion on a run that committed some versions of it."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.reports = MemoryEngine(str(folder)), str(folder)
        self.policy = EffectivePolicy(self.engine.address, Settings(check=Check(byte_budget="1000B")), {})  # type: ignore[arg-type]
        self.asked: list[CheckRequest] = []

    def of(self, *said: CheckReport, document: RunDocument | None = None) -> RunDocument:
        """What the document says once its versions, 7 and up, were said these things of."""
        versions = {7 + i: report for i, report in enumerate(said)}
        checker = Checker(versions)
        engine: Any = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(on_spark, "check", lambda request, engine: checker.check(request))
            done = check_after_commit(document or self.document(*versions), self.policy, self.reports, engine=engine)
        self.asked = checker.asked
        return done

    def document(self, *versions: int) -> RunDocument:
        return RunDocument(
            run_id="night",
            table=self.engine.address.name,
            format="memory",
            operation=Operation.OPTIMIZE,
            outcome=Outcome.VERIFIED,
            base_version=6,
            parent_version=versions[-1] - 1,
            committed_version=versions[-1],
            commits=tuple(CommitResult(version, version - 1, (ONE,)) for version in versions),
            units=(UnitResult("day=1", None, Outcome.VERIFIED),),
            started_at=NIGHT,
            finished_at=NIGHT,
        )


@pytest.fixture
def opinions(tmp_path: Path) -> Opinions:
    return Opinions(tmp_path)


def report(status: CheckStatus, *results: ExpectationResult, **more: Any) -> CheckReport:
    return CheckReport(status, f"{len(results)} compared", results=results, seconds=1.5, **more)


def result(status: CheckStatus, unit: str | None = None) -> ExpectationResult:
    return ExpectationResult("no row is missing", unit, status, "3")


PASSED = report(CheckStatus.PASSED, result(CheckStatus.PASSED))
FAILED = report(
    CheckStatus.FAILED,
    result(CheckStatus.FAILED, "day=2"),
    differences=(UnitDifference(TWO, "published", Difference(missing_count=1)),),
)
ERRORED = report(CheckStatus.ERRORED, result(CheckStatus.ERRORED))
SKIPPED = CheckReport(CheckStatus.SKIPPED, "nothing was compared", "version 6 does not exist any more")


def test_one_version_is_reported_without_its_number(opinions: Opinions) -> None:
    found = opinions.of(PASSED).expectations
    assert (found.status, found.coverage, found.reason) == (CheckStatus.PASSED, "1 compared", None)
    assert [(r.expectation, r.status) for r in found.results] == [("no row is missing", CheckStatus.PASSED)]


def test_every_version_is_asked_about_within_one_budget(opinions: Opinions) -> None:
    done = opinions.of(PASSED, PASSED, PASSED)
    assert [(r.version, r.base_version, r.byte_budget) for r in opinions.asked] == [
        (7, 6, 333),
        (8, 6, 333),
        (9, 6, 333),
    ]
    assert {r.commit_user for r in opinions.asked} == {opinions.asked[0].commit_user}
    assert (done.outcome, done.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)
    assert done.metrics.seconds["check"] == 4.5
    assert [r.expectation for r in done.expectations.results] == [
        f"version {version}: no row is missing" for version in (7, 8, 9)
    ]
    assert done.expectations.coverage == "version 7: 1 compared; version 8: 1 compared; version 9: 1 compared"


@pytest.mark.parametrize(
    ("said", "status", "outcome"),
    [
        ((PASSED, FAILED, ERRORED), CheckStatus.FAILED, Outcome.MISMATCH),
        ((ERRORED, PASSED, SKIPPED), CheckStatus.ERRORED, Outcome.FAILED),
        ((PASSED, SKIPPED), CheckStatus.SKIPPED, Outcome.VERIFIED),
        ((PASSED, PASSED), CheckStatus.PASSED, Outcome.VERIFIED),
    ],
)
def test_the_worst_word_counts(
    opinions: Opinions, said: tuple[CheckReport, ...], status: CheckStatus, outcome: Outcome
) -> None:
    done = opinions.of(*said)
    assert (done.expectations.status, done.outcome) == (status, outcome)


def test_a_version_that_failed_holds_the_table_and_is_named(opinions: Opinions) -> None:
    done = opinions.of(PASSED, FAILED)
    expected = "the check of published version 8 failed: version 8: day=2: no row is missing; on hold"
    assert done.reason == expected
    assert done.go_back == f"restore {opinions.engine.address.name} to version 7", "directly before the one that failed"
    placed = held(opinions.reports, opinions.engine.address.name)
    assert placed is not None
    assert placed.reason == expected
    (difference,) = done.expectations.extra["differences"]  # type: ignore[misc]
    assert (difference["version"], difference["unit"]["partition"]) == (8, "day=2")  # type: ignore[has-type]
    again = opinions.of(FAILED, FAILED)
    assert str(again.reason).startswith("the check of published versions 7, 8 failed: ")


def test_an_error_or_a_skip_holds_nothing(opinions: Opinions) -> None:
    done = opinions.of(PASSED, SKIPPED)
    assert done.expectations.reason == "version 8: version 6 does not exist any more"
    errored = opinions.of(ERRORED)
    assert errored.expectations.reason is not None
    assert str(errored.reason).endswith(errored.expectations.reason)
    assert held(opinions.reports, opinions.engine.address.name) is None


def test_a_replaced_version_is_a_conflict_and_holds_nothing(opinions: Opinions) -> None:
    done = opinions.of(replace(SKIPPED, conflicted=True), PASSED)
    assert (done.outcome, done.reason) == (
        Outcome.CONFLICTED,
        "a foreign writer replaced version 7; nothing was deleted",
    )
    assert held(opinions.reports, opinions.engine.address.name) is None


def test_a_version_that_failed_holds_the_table_though_another_was_replaced(opinions: Opinions) -> None:
    assert opinions.of(replace(SKIPPED, conflicted=True), FAILED).outcome is Outcome.MISMATCH
    assert held(opinions.reports, opinions.engine.address.name) is not None


def test_a_check_that_could_not_run_may_be_run_again(opinions: Opinions) -> None:
    first = opinions.of(ERRORED)
    assert first.outcome is Outcome.FAILED
    assert opinions.of(PASSED, document=first).outcome is Outcome.VERIFIED


def test_units_that_lost_a_race_stay_lost(opinions: Opinions) -> None:
    document = opinions.document(7)
    lost = UnitResult("day=2", None, Outcome.CONFLICTED, "lost a race")
    assert opinions.of(PASSED, document=replace(document, units=(*document.units, lost))).outcome is Outcome.CONFLICTED


def test_a_document_without_commits_names_its_version(opinions: Opinions) -> None:
    opinions.of(PASSED, document=replace(opinions.document(7), commits=()))
    assert [request.version for request in opinions.asked] == [7]
