"""A group of tables in one session: every table and operation has its document, whatever happens to the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.commands.job import run_job
from nightkeep.errors import UsageError
from nightkeep.groups.session.after_crash import DIED
from nightkeep.groups.session.check_group import check_group
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Clustering, Curve, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.policy import Overrides, load
from nightkeep.records import CheckStatus, Expectations, load_document, load_history
from nightkeep.records.check_report import CheckReport, ExpectationResult
from nightkeep.records.document import to_text
from nightkeep.spark.engine import Engine
from nightkeep.tasks import Exchange, Mapper, inline, inline_exchange

POLICY = """\
version: 1
defaults: {{check: {{enabled: false}}}}
tables:
  - {{name: one, table: "memory:{folder}/one"}}
  - {{name: both, table: "memory:{folder}/both", operations: [persist-deletes, optimize]}}
  - {{name: gone, table: "memory:{folder}/gone"}}
  - {{name: last, table: "memory:{folder}/last", clustering: {{zorder: [id], range_ids: 8}}}}
  - {{name: lifted, table: "paimon:{folder}/lifted"}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy of tables in memory, of which one is not there."""
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    for name in ("one", "both", "last"):
        engine = MemoryEngine(f"{tmp_path}/{name}")
        engine.append("2026-11-01", range(10))
        engine.append("2026-11-01", range(10, 20))
    (tmp_path / "tables.yaml").write_text(POLICY.format(folder=tmp_path))
    return tmp_path


def group(folder: Path, *tables: str, **more: Any) -> TableGroup:
    return TableGroup(load(folder / "tables.yaml"), tables, "night-1", str(folder / "reports"), **more)


def cared(found: TableGroup, *operations: Operation) -> list[StoredDocument]:
    with _engine() as engine:
        return [*run_group(found, operations, engine)]


def _engine() -> Engine:
    return Engine(master="local[1]", task_memory_bytes=1 << 30)


def told(found: list[StoredDocument]) -> list[tuple[str, Operation, Outcome]]:
    return [(each.document.table, each.document.operation, each.document.outcome) for each in found]


@pytest.mark.slow
def test_each_table_is_maintained_as_its_policy_asks_whatever_happens_to_the_others(folder: Path) -> None:
    found = cared(group(folder, "one", "both", "gone", "last"))
    assert told(found) == [
        ("one", Operation.OPTIMIZE, Outcome.VERIFIED),
        ("both", Operation.PERSIST_DELETES, Outcome.REFUSED),
        ("both", Operation.OPTIMIZE, Outcome.VERIFIED),
        ("gone", Operation.OPTIMIZE, Outcome.FAILED),
        ("last", Operation.OPTIMIZE, Outcome.VERIFIED),
    ]
    assert len({each.path for each in found}) == len(found)
    assert {each.document.run_id for each in found} == {f"night-1:{each.document.table}" for each in found}
    assert "expected a table of this process" in str(found[3].document.reason)


@pytest.mark.extended
@pytest.mark.slow
def test_operations_that_are_named_are_the_only_ones(folder: Path) -> None:
    assert told(cared(group(folder, "one", "both"), Operation.OPTIMIZE)) == [
        ("one", Operation.OPTIMIZE, Outcome.VERIFIED),
        ("both", Operation.OPTIMIZE, Outcome.VERIFIED),
    ]


@pytest.mark.slow
def test_a_retry_finds_what_it_published_and_goes_on(folder: Path) -> None:
    first = cared(group(folder, "both"))
    again = cared(group(folder, "both"))
    assert told(again) == told(first)
    assert again[1].document == first[1].document


@pytest.mark.extended
@pytest.mark.slow
def test_what_is_stated_stands_above_every_policy(folder: Path) -> None:
    found = cared(group(folder, "one", "last", overrides=Overrides(hilbert="note, id")))
    assert [each.document.plan.clustering for each in found] == [
        Clustering(("note", "id"), Curve.HILBERT),
        Clustering(("note", "id"), Curve.HILBERT, 8),
    ]


@pytest.mark.extended
@pytest.mark.slow
def test_a_table_at_which_a_process_died_is_failed_and_not_worked_on(folder: Path) -> None:
    found = cared(group(folder, "one", "both", "last", died=("both",)))
    assert told(found) == [
        ("one", Operation.OPTIMIZE, Outcome.VERIFIED),
        ("both", Operation.PERSIST_DELETES, Outcome.FAILED),
        ("last", Operation.OPTIMIZE, Outcome.VERIFIED),
    ]
    assert found[1].document.reason == DIED and load_document(found[1].path) == found[1].document


@pytest.mark.extended
@pytest.mark.slow
def test_what_was_done_before_a_process_died_is_reported_as_it_is(folder: Path) -> None:
    first = cared(group(folder, "both", "one"))
    again = cared(group(folder, "both", "one", died=("both", "one")))
    assert [each.document for each in again] == [each.document for each in first]


@pytest.mark.extended
@pytest.mark.slow
def test_the_table_at_work_is_noted(folder: Path) -> None:
    hand = folder / "hand"
    alone = group(folder, "one", "last", hand=hand, one_by_one=True)
    assert [hand.read_text() for _ in run_group(alone, (), _engine())] == ["one", "last"]
    beside = replace(group(folder, "one", "last", hand=hand), prefix="night-2")
    assert {name for _ in run_group(beside, (), _engine()) for name in hand.read_text().split()} <= {"one", "last"}


@pytest.mark.slow
def test_columns_for_a_table_that_is_not_clustered_end_the_job_before_any_work(folder: Path) -> None:
    with pytest.raises(UsageError, match="--zorder: expected operation optimize, found upgrade"):
        cared(group(folder, "one", "lifted", overrides=Overrides(zorder="id")))
    assert not (folder / "reports").exists()


class Checking:
    """An engine without Spark, whose checker says what it is told to, and looks up what is stored meanwhile."""

    CheckRequest = CheckRequest

    def __init__(self, folder: Path, *said: CheckStatus | BaseException) -> None:
        self.folder, self.said = folder, list(said)
        self.asked: list[tuple[str, int | None, CheckStatus]] = []
        self.imported = 0

    def mapper(self) -> Mapper:
        return inline

    def exchange(self) -> Exchange:
        return inline_exchange

    def spark(self) -> None:
        return None

    def check(self, request: CheckRequest) -> CheckReport:
        self.imported += 1
        (stored,) = load_history(self.folder / "reports", request.address.name)
        self.asked.append((request.address.name, request.version, stored.expectations.status))
        said = self.said.pop(0) if self.said else CheckStatus.PASSED
        if isinstance(said, BaseException):
            raise said
        return CheckReport(said, "all of it", results=(ExpectationResult("same rows", None, said, ""),))


class TestCheck:
    """What is published is checked at once, and later only if it was not."""

    @pytest.fixture(autouse=True)
    def checked(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nightkeep.groups.session.run_group.beside", lambda engine: engine)
        monkeypatch.setattr("nightkeep.checking.on_spark.check", lambda request, engine: engine.check(request))
        text = (folder / "tables.yaml").read_text()
        (folder / "tables.yaml").write_text(text.replace("enabled: false", "enabled: true"))

    def care(self, folder: Path, engine: Checking, *tables: str) -> list[StoredDocument]:
        return [*run_group(group(folder, *tables), (Operation.OPTIMIZE,), cast(Engine, engine))]

    def check(self, folder: Path, engine: Checking, *tables: str) -> list[StoredDocument]:
        return [*check_group(group(folder, *tables), cast(Engine, engine))]

    def test_comes_right_after_each_publish_between_two_documents(self, folder: Path) -> None:
        engine = Checking(folder)
        found = self.care(folder, engine, "one", "gone", "last")
        assert sorted(engine.asked) == [("last", 4, CheckStatus.NOT_RUN), ("one", 4, CheckStatus.NOT_RUN)]
        assert [load_document(each.path).expectations.status for each in found] == [
            CheckStatus.PASSED,
            CheckStatus.NOT_RUN,
            CheckStatus.PASSED,
        ]
        assert self.check(folder, engine, "one", "gone", "last") == found
        assert len(engine.asked) == 2

    @pytest.mark.slow
    def test_is_not_imported_where_nothing_is_published(self, folder: Path) -> None:
        cared(group(folder, "one"))
        engine = Checking(folder)
        other = replace(group(folder, "one", "gone"), prefix="night-2")
        assert told([*run_group(other, (Operation.OPTIMIZE,), cast(Engine, engine))]) == [
            ("one", Operation.OPTIMIZE, Outcome.UNCHANGED),
            ("gone", Operation.OPTIMIZE, Outcome.FAILED),
        ]
        assert engine.imported == 0

    def test_that_a_death_left_out_is_for_who_comes_next(self, folder: Path) -> None:
        for again in (self.check, self.care):
            with pytest.raises(KeyboardInterrupt):
                self.care(folder, Checking(folder, KeyboardInterrupt()), "one")
            (left,) = load_history(folder / "reports", "one")
            assert (left.outcome, left.committed_version, left.awaits_check) == (Outcome.FAILED, 4, True)
            assert left.reason == "published, but its check did not report"
            (found,) = again(folder, Checking(folder), "one")
            judged = {"expectations": found.document.expectations, "metrics": found.document.metrics}
            assert found.document == replace(left, outcome=Outcome.VERIFIED, reason=None, **judged)
            assert found.document.expectations.status is CheckStatus.PASSED
            Path(str(found.path)).write_text(to_text(left))

    @pytest.mark.parametrize("said", [CheckStatus.ERRORED, RuntimeError("out of memory")])
    def test_that_broke_is_done_again_and_leaves_nothing_of_the_first(
        self, folder: Path, said: CheckStatus | Exception
    ) -> None:
        (first,) = self.care(folder, Checking(folder, said), "one")
        assert (first.document.outcome, first.document.awaits_check) == (Outcome.FAILED, True)
        (again,) = self.check(folder, Checking(folder), "one")
        assert (again.document.outcome, again.document.reason) == (Outcome.VERIFIED, None)
        assert again.document.expectations.status is CheckStatus.PASSED

    def test_that_failed_holds_the_table_before_its_next_operation(self, folder: Path) -> None:
        engine = cast(Engine, Checking(folder, CheckStatus.FAILED))
        first, second = run_group(group(folder, "one"), (Operation.OPTIMIZE, Operation.PERSIST_DELETES), engine)
        assert (first.document.outcome, first.document.awaits_check) == (Outcome.MISMATCH, False)
        assert str(second.document.reason).startswith("on hold since run night-1:one: the check of published version 4")

    def test_that_is_turned_off_is_skipped_and_awaited_by_nobody(self, folder: Path) -> None:
        text = (folder / "tables.yaml").read_text()
        (folder / "tables.yaml").write_text(text.replace("enabled: true", "enabled: false"))
        engine = Checking(folder)
        (found,) = self.care(folder, engine, "one")
        assert (found.document.outcome, found.document.awaits_check, engine.imported) == (Outcome.VERIFIED, False, 0)
        assert found.document.expectations == Expectations(CheckStatus.SKIPPED, reason="the policy turns the check off")
        assert load_document(found.path) == found.document


class TestJob:
    def arguments(self, folder: Path, *more: str) -> list[str]:
        names = {"policy": "tables.yaml", "reports": "reports", "result": "result.json"}
        paths = [part for name, file in names.items() for part in (f"--{name}", str(folder / file))]
        return [*paths, "--tables", "one,both", "--run-id-prefix", "night-1", *more]

    @pytest.mark.slow
    def test_writes_a_result_for_each_table_and_operation(self, folder: Path) -> None:
        assert run_job(self.arguments(folder), operations=()) == 0
        entries = json.loads((folder / "result.json").read_text())
        assert [(entry["table"], entry["operation"], entry["outcome"]) for entry in entries] == [
            ("one", "optimize", "verified"),
            ("both", "persist-deletes", "refused"),
            ("both", "optimize", "verified"),
        ]
        assert [entry["committed_version"] for entry in entries] == [4, None, 4]
        assert all(Path(entry["document"]).exists() for entry in entries)

    def test_takes_columns_and_a_size(self, folder: Path) -> None:
        options = ["--zorder", "id", "--target-size", "1B", "--dry-run"]
        run_job(self.arguments(folder, *options), operations=(Operation.OPTIMIZE,))
        documents = [json.loads(path.read_text()) for path in folder.glob("reports/*/*.json")]
        assert {document["plan"]["clustering"]["curve"] for document in documents} == {"z-order"}
        assert {document["outcome"] for document in documents} == {"unchanged"}

    @pytest.mark.extended
    @pytest.mark.slow
    def test_an_option_left_empty_states_nothing(self, folder: Path) -> None:
        run_job(self.arguments(folder, "--zorder=", "--hilbert=", "--target-size=", "--where="), operations=())
        assert json.loads((folder / "result.json").read_text())[0]["outcome"] == "verified"

    def test_a_slip_ends_it_before_any_work(self, folder: Path) -> None:
        with pytest.raises(UsageError, match="--target-size"):
            run_job(self.arguments(folder, "--target-size", "3"), operations=())
        assert not (folder / "result.json").exists()


@pytest.mark.parametrize(
    ("script", "operations"),
    [
        ("care", "()"),
        ("l0_upgrade", "(Operation.UPGRADE,)"),
        ("persist_deletes", "(Operation.PERSIST_DELETES,)"),
        ("optimize", "(Operation.OPTIMIZE,)"),
    ],
)
def test_each_script_runs_what_it_is_named_for(script: str, operations: str) -> None:
    text = (Path(__file__).parents[3] / "jobs" / f"{script}.py").read_text(encoding="utf-8")
    assert f"sys.exit(one_line(lambda: run_job(sys.argv[1:], operations={operations})))" in text
