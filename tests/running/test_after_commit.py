"""Whatever fails after a version was published: the document names the version and the reason, and awaits its check."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JNetworkError
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.admission.order import Order
from nightkeep.checking import on_spark
from nightkeep.checking.post_commit_check import check_after_commit
from nightkeep.errors import CorruptMetadata
from nightkeep.formats import open_table
from nightkeep.groups.one_operation import check_and_store
from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol import OpenTable
from nightkeep.records import CheckStatus, RunDocument, held, store
from nightkeep.records.check_report import CheckReport
from nightkeep.records.failure_outcomes import AFTER_COMMIT, CHECK_UNFINISHED
from nightkeep.running.rewrites import table_reading
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

FAILURES = [
    KeyError("_VALUE_STATS_COLS"),
    CorruptMetadata("a file", "a bound", "half a character"),
    OSError("no answer"),
    RuntimeError("a bug"),
]
each_failure = pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
Failing = Callable[[OpenTable, Callable[..., NoReturn]], OpenTable]


class Night:
    """One table with work, and what the format's functions do after its commit."""

    def __init__(self, folder: Path) -> None:
        self.engine, self.reports = MemoryEngine(str(folder)), str(folder / "reports")
        for day in ("2026-11-01", "2026-11-02"):
            self.engine.append(day, range(50))
            self.engine.append(day, range(50, 90))
        self.policy = EffectivePolicy(self.engine.address, Settings(), {})
        self.published = False

    @property
    def version(self) -> int:
        return open_table(self.engine.address).snapshot().version

    def run(self, run_id: str = "night") -> RunDocument:
        order = Order(Operation.OPTIMIZE, run_id, self.reports)
        return run_operation(self.policy, order, mapper=lambda: inline)

    def checked(self, document: RunDocument, report: CheckReport) -> RunDocument:
        """The document after a check that reports this of every version."""
        engine: Any = None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(on_spark, "check", lambda request, engine: report)
            return check_after_commit(document, self.policy, self.reports, engine=engine)

    def after_commit(self, table: OpenTable, failure: Exception, failing: Failing) -> OpenTable:
        """The table of which some functions fail once a version is published."""

        def raising(real: Callable[..., Any]) -> Callable[..., Any]:
            def either(*arguments: Any, **named: Any) -> Any:
                if self.published:
                    raise failure
                return real(*arguments, **named)

            return either

        def commit(candidate: Any) -> bool:
            self.published = table.commits.commit(candidate)
            return self.published

        return failing(replace(table, commits=replace(table.commits, commit=commit)), raising)  # type: ignore[arg-type]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def _snapshot(table: OpenTable, raising: Any) -> OpenTable:
    return replace(table, snapshot=raising(table.snapshot))


def _layout(table: OpenTable, raising: Any) -> OpenTable:
    return replace(table, layout_metrics=raising(table.layout_metrics))


def _commits(name: str) -> Failing:
    def failing(table: OpenTable, raising: Any) -> OpenTable:
        return replace(table, commits=replace(table.commits, **{name: raising(getattr(table.commits, name))}))

    return failing


def _everything(table: OpenTable, raising: Any) -> OpenTable:
    for name in ("undermined", "rollback", "discard"):
        table = _commits(name)(table, raising)
    return _layout(_snapshot(table, raising), raising)


STEPS: dict[str, Failing] = {
    "snapshot": _snapshot,
    "layout": _layout,
    "undermined": _commits("undermined"),
    "committed": _commits("committed"),
    "rollback": _commits("rollback"),
    "everything": _everything,
}


@each_failure
@pytest.mark.parametrize("step", STEPS)
def test_the_document_names_the_version_and_awaits_its_check(
    night: Night, monkeypatch: pytest.MonkeyPatch, step: str, failure: Exception
) -> None:
    monkeypatch.setattr(
        table_reading, "open_table", lambda address: night.after_commit(open_table(address), failure, STEPS[step])
    )
    document = night.run()
    assert night.version == document.committed_version == 6
    assert document.awaits_check and [commit.version for commit in document.commits] == [6]
    assert {unit.outcome for unit in document.units} == {Outcome.VERIFIED}
    fails = step in ("snapshot", "everything")
    assert document.outcome is (Outcome.FAILED if fails else Outcome.VERIFIED)
    if fails:
        assert document.reason is not None and document.reason.startswith(AFTER_COMMIT)
        assert str(failure) in document.reason and str(failure) in str(document.metrics.extra["unmeasured"])
    else:
        assert document.reason is None
    done = night.checked(document, CheckReport(CheckStatus.PASSED, "all of it"))
    assert (done.outcome, done.reason, done.committed_version) == (Outcome.VERIFIED, None, 6)
    if step == "layout":
        assert str(failure) in str(done.metrics.extra["unmeasured"])


@each_failure
def test_a_failure_within_the_commit_itself_is_looked_up(
    night: Night, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def opened(address: Any) -> OpenTable:
        table = open_table(address)

        def commit(candidate: Any) -> bool:
            table.commits.commit(candidate)
            raise failure

        return replace(table, commits=replace(table.commits, commit=commit))

    monkeypatch.setattr(table_reading, "open_table", opened)
    document = night.run()
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, night.version)
    assert document.awaits_check


@each_failure
def test_a_retry_that_cannot_read_its_version_names_it(
    night: Night, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    night.run()
    night.published = True
    monkeypatch.setattr(
        table_reading, "open_table", lambda address: night.after_commit(open_table(address), failure, _snapshot)
    )
    document = night.run()
    assert (document.outcome, document.committed_version) == (Outcome.FAILED, 6)
    assert document.awaits_check and document.reason is not None and document.reason.startswith(AFTER_COMMIT)


def test_a_retry_that_cannot_open_the_table_keeps_what_was_stored(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(night.run(), night.reports)

    def unreachable(address: Any) -> NoReturn:
        raise OSError("no route to host")

    monkeypatch.setattr(table_reading, "open_table", unreachable)
    document = night.run()
    assert (document.outcome, document.committed_version, document.awaits_check) == (Outcome.FAILED, 6, True)
    assert document.reason == f"{AFTER_COMMIT}OSError: no route to host"


def test_a_retry_that_failed_after_the_check_is_checked_once_more(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = CheckReport(CheckStatus.PASSED, "all of it")
    store(night.checked(night.run(), passed), night.reports)
    with monkeypatch.context() as patch:
        patch.setattr(table_reading, "open_table", lambda address: 1 / 0)
        order = Order(Operation.OPTIMIZE, "night", night.reports)
        failed = run_operation(night.policy, order, mapper=lambda: inline)
    assert (failed.outcome, failed.committed_version) == (Outcome.FAILED, 6)
    assert failed.reason == f"{AFTER_COMMIT}ZeroDivisionError: division by zero"
    store(failed, night.reports)
    again = night.checked(night.run(), passed)
    assert (again.outcome, again.reason, again.committed_version) == (Outcome.VERIFIED, None, 6)


class TestCheck:
    def test_that_loses_its_jvm_has_a_reason_and_is_repeated(self, night: Night) -> None:
        def lost() -> NoReturn:
            raise Py4JNetworkError("An error occurred while trying to connect to the Java server")

        document = night.run()
        engine: Any = SimpleNamespace(spark=lost)
        order = Order(document.operation, document.run_id, night.reports)
        done = check_and_store(document, night.policy, order, engine).document
        assert (done.outcome, done.committed_version, done.awaits_check) == (Outcome.FAILED, 6, True)
        assert done.reason is not None and done.reason.startswith(CHECK_UNFINISHED)
        assert "Spark's JVM has ended" in done.reason and "\n" not in done.reason
        again = night.checked(done, CheckReport(CheckStatus.PASSED, "all of it"))
        assert (again.outcome, again.reason) == (Outcome.VERIFIED, None)

    def test_whose_results_cannot_be_kept_holds_the_table_all_the_same(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(*arguments: Any) -> NoReturn:
            raise RuntimeError("a bug")

        monkeypatch.setattr("nightkeep.checking.post_commit_check.keep_validations", failing)
        failed = CheckReport(CheckStatus.FAILED, "all of it")
        monkeypatch.setattr(on_spark, "check", lambda request, engine: failed)
        engine: Any = None
        document = night.run()
        order = Order(document.operation, document.run_id, night.reports)
        done = check_and_store(document, night.policy, order, engine).document
        assert held(night.reports, night.engine.address.name) is not None
        assert done.committed_version == 6
