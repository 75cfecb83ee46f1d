"""A check that a run left behind is done by the next night, or on request, and nobody finds it left any more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.support.commands import said

from nightkeep.groups.session.check_group import check_group
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.policy import load
from nightkeep.records import CheckStatus, RunDocument, load_history, store
from nightkeep.records.check_report import CheckReport, ExpectationResult
from nightkeep.records.document import Expectations
from nightkeep.records.failure_outcomes import UNFINISHED
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange

POLICY = """\
version: 1
tables:
  - {{name: one, table: "memory:{folder}/one", operations: [optimize]}}
  - {{name: two, table: "memory:{folder}/two", operations: [optimize]}}
"""
ENGINES = dict[str, MemoryEngine]()
LEFT = "published, but its check did not report"


class Checking:
    """An engine whose check says what it is told to, `passed` without being told."""

    mapper = staticmethod(lambda: inline)
    exchange = staticmethod(lambda: inline_exchange)

    def __init__(self, *said: CheckStatus | BaseException) -> None:
        self.said, self.asked, self.stored_bytes = list(said), list[tuple[str, int | None]](), 0

    def __enter__(self) -> Checking:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def check(self, request: CheckRequest) -> CheckReport:
        self.asked.append((request.address.name, request.version))
        told = self.said.pop(0) if self.said else CheckStatus.PASSED
        if isinstance(told, BaseException):
            raise told
        return CheckReport(told, "all of it", results=(ExpectationResult("same rows", None, told, "because"),))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy of two tables in memory, with something to do."""
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr("nightkeep.groups.session.run_group.beside", lambda engine: engine)
    monkeypatch.setattr("nightkeep.checking.on_spark.check", lambda request, engine: engine.check(request))
    for name in ("one", "two"):
        ENGINES[name] = MemoryEngine(f"{tmp_path}/{name}")
        grown(0, name)
    (tmp_path / "tables.yaml").write_text(POLICY.format(folder=tmp_path))
    return tmp_path


def group(folder: Path, prefix: str, *tables: str, **more: Any) -> TableGroup:
    return TableGroup(load(folder / "tables.yaml"), tables or ("one",), prefix, str(folder / "reports"), **more)


def night(found: TableGroup, engine: Checking, *operations: Operation) -> list[StoredDocument]:
    return [*run_group(found, operations, cast(Engine, engine))]


def killed(folder: Path, prefix: str, table: str = "one") -> RunDocument:
    """The document of a run that ended while its check was at work."""
    with pytest.raises(KeyboardInterrupt):
        night(group(folder, prefix, table), Checking(KeyboardInterrupt()), Operation.OPTIMIZE)
    return next(each for each in load_history(folder / "reports", table) if each.run_id == f"{prefix}:{table}")


def grown(start: int, table: str = "one") -> None:
    for first in (start, start + 10):
        ENGINES[table].append("2026-11-01", range(first, first + 10))


def told(folder: Path, table: str = "one") -> list[tuple[str, Outcome, CheckStatus]]:
    found = load_history(folder / "reports", table)
    return [(each.run_id.partition(":")[0], each.outcome, each.expectations.status) for each in found]


def test_a_version_without_a_check_is_failed_in_its_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = killed(folder, "night-1")
    assert (document.outcome, document.reason, document.committed_version) == (Outcome.FAILED, LEFT, 4)
    (file,) = (folder / "reports/one").glob("*.json")
    assert json.loads(file.read_text())["outcome"] == "failed"
    where = ["--policy", str(folder / "tables.yaml"), "--reports", str(folder / "reports")]
    assert [(each["outcome"], each["reason"]) for each in said(capsys, "history", "--json", *where).json] == [
        ("failed", LEFT)
    ]


def test_the_next_night_checks_what_an_earlier_one_left(folder: Path) -> None:
    killed(folder, "night-1")
    engine = Checking()
    first, second = night(group(folder, "night-2"), engine)
    assert (first.document.run_id, first.document.outcome, first.document.reason) == (
        "night-1:one",
        Outcome.VERIFIED,
        None,
    )
    assert (second.document.run_id, second.document.outcome) == ("night-2:one", Outcome.UNCHANGED)
    assert engine.asked == [("one", 4)]
    assert told(folder) == [
        ("night-1", Outcome.VERIFIED, CheckStatus.PASSED),
        ("night-2", Outcome.UNCHANGED, CheckStatus.NOT_RUN),
    ]
    assert len(night(group(folder, "night-3"), engine)) == 1 and engine.asked == [("one", 4)]


def test_it_is_done_before_the_work_so_that_a_mismatch_holds_the_table(folder: Path) -> None:
    killed(folder, "night-1")
    grown(20)
    first, second = night(group(folder, "night-2"), Checking(CheckStatus.FAILED))
    assert (first.document.outcome, second.document.outcome) == (Outcome.MISMATCH, Outcome.SKIPPED)
    assert str(second.document.reason).startswith("on hold since run night-1:one")


def test_one_that_breaks_again_keeps_its_cause_and_is_left(folder: Path) -> None:
    killed(folder, "night-1")
    first, _ = night(group(folder, "night-2"), Checking(RuntimeError("no executor")))
    assert (first.document.outcome, first.document.awaits_check) == (Outcome.FAILED, True)
    assert first.document.reason == "published, but its check did not finish: RuntimeError: no executor"
    (again, _) = night(group(folder, "night-3"), Checking())
    assert (again.document.outcome, again.document.reason) == (Outcome.VERIFIED, None)


def test_a_commit_that_no_document_names_is_found_in_the_table(folder: Path) -> None:
    document = killed(folder, "night-1")
    # So the document is before any work.
    before = replace(document, reason=f"{UNFINISHED}; ...", commits=(), committed_version=None, parent_version=None)
    store(before, folder / "reports")
    engine = Checking()
    first, _ = night(group(folder, "night-2"), engine)
    assert (first.document.run_id, first.document.outcome) == ("night-1:one", Outcome.VERIFIED)
    assert engine.asked == [("one", 4)]


def test_a_night_does_the_newest_few(folder: Path) -> None:
    for number in range(5):
        killed(folder, f"night-{number}")
        grown(100 * (number + 1))
    engine = Checking()
    found = night(group(folder, "last"), engine)
    assert [each.document.run_id for each in found] == [f"night-{n}:one" for n in (4, 3, 2)] + ["last:one"]


def test_what_is_named_or_a_dry_run_checks_nothing_of_others(folder: Path) -> None:
    killed(folder, "night-1")
    engine = Checking()
    assert len(night(group(folder, "night-2"), engine, Operation.OPTIMIZE)) == 1
    assert len(night(group(folder, "night-3", dry_run=True), engine)) == 1
    assert engine.asked == [] and told(folder)[0][1] is Outcome.FAILED


def test_a_version_that_is_gone_is_left_alone_by_a_night(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = killed(folder, "night-1")
    store(replace(document, base_version=77), folder / "reports")
    engine = Checking()
    assert len(night(group(folder, "night-2"), engine)) == 1 and engine.asked == []


def test_the_second_job_of_a_night_checks_it_too(folder: Path) -> None:
    killed(folder, "night-1")
    found = [*check_group(group(folder, "night-2"), cast(Engine, Checking()))]
    assert [(each.document.run_id, each.document.outcome) for each in found] == [("night-1:one", Outcome.VERIFIED)]


def test_where_checks_are_turned_off_meanwhile_nobody_waits_for_one(folder: Path) -> None:
    killed(folder, "night-1")
    text = (folder / "tables.yaml").read_text()
    (folder / "tables.yaml").write_text(f"{text}defaults: {{check: {{enabled: false}}}}\n")
    engine = Checking()
    (found,) = check_group(group(folder, "night-1"), cast(Engine, engine))
    assert (found.document.outcome, found.document.reason, engine.asked) == (Outcome.VERIFIED, None, [])
    assert found.document.expectations == Expectations(CheckStatus.SKIPPED, reason="the policy turns the check off")


class TestOnRequest:
    """`nightkeep check --left`."""

    @pytest.fixture
    def engine(self, monkeypatch: pytest.MonkeyPatch) -> Checking:
        engine = Checking()
        monkeypatch.setattr("nightkeep.api.left_checks.new_engine", lambda *_, **__: engine)
        return engine

    def ask(self, folder: Path, capture: pytest.CaptureFixture[str], *more: str) -> Any:
        where = ["--policy", str(folder / "tables.yaml"), "--reports", str(folder / "reports")]
        return said(capture, "check", *more, *where)

    def test_all_tables_or_one(self, folder: Path, engine: Checking, capsys: pytest.CaptureFixture[str]) -> None:
        for table in ("one", "two"):
            killed(folder, "night-1", table)
        one = self.ask(folder, capsys, "two", "--left", "--json")
        assert (one.status, [(each["table"], each["outcome"]) for each in one.json]) == (0, [("two", "verified")])
        rest = self.ask(folder, capsys, "--left", "--json")
        assert (rest.status, [(each["table"], each["outcome"]) for each in rest.json]) == (0, [("one", "verified")])
        none = self.ask(folder, capsys, "--left", "--json")
        assert (none.status, none.json, engine.asked) == (0, [], [("two", 4), ("one", 4)])

    @pytest.mark.parametrize(("told", "status"), [(CheckStatus.FAILED, 5), (CheckStatus.ERRORED, 1)])
    def test_its_status_is_that_of_the_worst(
        self, folder: Path, engine: Checking, told: CheckStatus, status: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for table in ("one", "two"):
            killed(folder, "night-1", table)
        engine.said = [CheckStatus.PASSED, told]
        assert self.ask(folder, capsys, "--left").status == status

    def test_a_table_that_left_the_policy_is_found_by_its_address(
        self, folder: Path, engine: Checking, capsys: pytest.CaptureFixture[str]
    ) -> None:
        killed(folder, "night-1")
        (folder / "tables.yaml").write_text("version: 1\n")
        done = self.ask(folder, capsys, "--left", "--json")
        assert [(each["table"], each["outcome"]) for each in done.json] == [("one", "verified")]

    @pytest.mark.parametrize(
        "more", [("--left", "--version", "3"), ("--left", "--base", "3"), ("--left", "--reader", "duckdb"), ()]
    )
    def test_a_slip_is_named(self, folder: Path, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
        done = self.ask(folder, capsys, *more)
        assert done.status == 2 and "--left" in done.err
