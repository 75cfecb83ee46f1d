"""Every way that caring for a table can end: the outcome, the reason, and what the table looks like afterwards."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.support.unlucky_tables import committing, lossy, overtaken, unanswered

from nightkeep.admission.order import Order
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.formats.memory.metadata.versions import SORTED
from nightkeep.model import (
    Address,
    Candidate,
    Clustering,
    Committed,
    Curve,
    Operation,
    Outcome,
    Request,
    Rewrite,
    Run,
    UnitKey,
    VerifyLevel,
    run_token,
)
from nightkeep.policy import EffectivePolicy, Settings, Window, Windows
from nightkeep.protocol import OpenTable, OperationRules, Snapshot
from nightkeep.records import RunDocument, hold, release, store
from nightkeep.records.failure_outcomes import published_outcome
from nightkeep.running.ended_early import failed
from nightkeep.running.rewrites import run_operation as care_module
from nightkeep.running.rewrites import table_reading
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import Mapper, inline

DAYS = ("2026-11-01", "2026-11-02")


@dataclass
class Night:
    """One table, its engine, and care for it; `opened` counts how often there was work for a mapper."""

    engine: MemoryEngine
    reports: Path
    opened: int = 0

    def mapper(self) -> Mapper:
        self.opened += 1
        return inline

    def care(self, run_id: str = "night", *, dry_run: bool = False, **settings: Any) -> RunDocument:
        return run_operation(self.policy(**settings), self.order(run_id, dry_run=dry_run), mapper=self.mapper)

    def policy(self, **settings: Any) -> EffectivePolicy:
        return EffectivePolicy(self.engine.address, Settings().model_copy(update=settings), {})

    def order(self, run_id: str, *, dry_run: bool = False) -> Order:
        return Order(Operation.OPTIMIZE, run_id, str(self.reports), dry_run)

    @property
    def contents(self) -> dict[str, bytes]:
        return dict(self.engine.store.files)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """Two days with two small files each; the second has deletes."""
    engine = MemoryEngine(str(tmp_path))
    for day in DAYS:
        engine.append(day, range(50))
        engine.append(day, range(50, 90))
    engine.delete(DAYS[1], range(45, 55))
    return Night(engine, tmp_path / "reports")


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[OpenTable], OpenTable]], None]:
    """Wrap every table that care opens from here on."""

    def wrap(wrapper: Callable[[OpenTable], OpenTable]) -> None:
        monkeypatch.setattr(table_reading, "open_table", lambda address: wrapper(open_table(address)))

    return wrap


Opening = Callable[[Callable[[OpenTable], OpenTable]], None]


def test_verified(night: Night) -> None:
    document = night.care()
    assert (document.outcome, document.reason) == (Outcome.VERIFIED, None)
    assert (document.base_version, document.parent_version, document.committed_version) == (6, 6, 7)
    assert [(unit.partition, unit.rows, unit.equal) for unit in document.units] == [
        (f"day={DAYS[0]}", 90, True),
        (f"day={DAYS[1]}", 80, True),
    ]
    assert (document.metrics.files_before, document.metrics.files_after) == (4, 2)
    assert (document.metrics.rows, document.metrics.deletion_vectors) == (170, 0)
    assert list(document.metrics.seconds) == ["plan", "rewrite", "verify", "publish"]
    assert document.verification is not None
    assert document.verification.level is VerifyLevel.FULL
    assert night.opened == 1


def test_unchanged(night: Night) -> None:
    night.care("first")
    before = night.contents
    document = night.care("second")
    assert (document.outcome, document.reason, document.committed_version) == (Outcome.UNCHANGED, "nothing to do", None)
    assert (night.contents, night.opened) == (before, 1)


def test_dry_run(night: Night) -> None:
    before = night.contents
    document = night.care(dry_run=True)
    assert document.outcome is Outcome.SKIPPED
    assert document.reason == "dry run: this is the plan, nothing was changed"
    assert [unit.partition for unit in document.plan.units] == [f"day={day}" for day in DAYS]
    assert (night.contents, night.opened) == (before, 0)


class TestNotNow:
    def test_on_hold_until_it_is_released(self, night: Night) -> None:
        hold(night.reports, night.engine.address.name, replace(night.care(dry_run=True), reason="rows differ"))
        document = night.care()
        assert document.outcome is Outcome.SKIPPED
        assert document.reason is not None
        assert document.reason.startswith("on hold since run night: rows differ; to release it: nightkeep release ")
        planned = night.care(dry_run=True).plan
        assert planned.units
        assert planned.notes[-1] == f"a run would be skipped now: {document.reason}"
        release(night.reports, night.engine.address.name)
        assert night.care().outcome is Outcome.VERIFIED

    def test_paused(self, night: Night) -> None:
        document = night.care(pause="migration until Friday")
        assert (document.outcome, document.reason) == (Outcome.SKIPPED, "paused: migration until Friday")

    def test_outside_its_window(self, night: Night) -> None:
        later = datetime.now(UTC) + timedelta(hours=2)
        window = Window(later.time(), (later + timedelta(hours=1)).time(), "UTC")
        document = night.care(window=Windows(window))
        assert (document.outcome, document.reason) == (Outcome.SKIPPED, f"outside its window {window}")
        planned = night.care(window=Windows(window), dry_run=True).plan
        assert planned.units
        assert planned.notes[-1] == f"a run would be skipped now: outside its window {window}"
        of_another = Windows(None, ((Operation.UPGRADE, window),))
        assert night.care(window=of_another, dry_run=True).plan.notes == ()

    def test_nothing_is_opened(self, night: Night, opening: Opening) -> None:
        opening(lambda table: pytest.fail("opened"))
        assert night.care(pause="wait").outcome is Outcome.SKIPPED


def test_refused(tmp_path: Path) -> None:
    night = Night(MemoryEngine(str(tmp_path), features=[SORTED]), tmp_path)
    document = night.care()
    assert document.outcome is Outcome.REFUSED
    assert document.reason == "feature sorted is not kept by optimize; merge its files with its engine"


def test_a_filter_that_cannot_be_understood_is_the_callers_to_mend(night: Night) -> None:
    with pytest.raises(UsageError, match="price"):
        night.care(where="price > 3")


def test_a_filter_and_a_level_are_the_policys(night: Night) -> None:
    document = night.care(where=f"day = '{DAYS[0]}'", verify=VerifyLevel.TOUCHED)
    assert [unit.partition for unit in document.units] == [f"day={DAYS[0]}"]
    assert document.verification is not None
    assert document.verification.level is VerifyLevel.TOUCHED


class TestMismatch:
    def test_nothing_is_published_and_every_file_is_kept(self, night: Night, opening: Opening) -> None:
        before = night.contents
        opening(lossy)
        document = night.care()
        assert (document.outcome, document.committed_version, document.commits) == (Outcome.MISMATCH, None, ())
        assert open_table(night.engine.address).snapshot().version == document.base_version
        kept = night.contents
        assert before.items() < kept.items()
        assert sum(name.startswith("data-") for name in kept.keys() - before.keys()) == 2

    def test_the_reason_names_unit_and_rows(self, night: Night, opening: Opening) -> None:
        opening(lossy)
        document = night.care()
        assert document.reason is not None
        assert f"day={DAYS[0]}: rows differ, 90:" in document.reason
        assert [(unit.outcome, unit.equal, unit.rows) for unit in document.units] == [
            (Outcome.MISMATCH, False, 90),
            (Outcome.MISMATCH, False, 80),
        ]


class TestConflicted:
    def test_every_unit_lost(self, night: Night, opening: Opening) -> None:
        opening(lambda table: overtaken(table, lambda: [night.engine.delete(day, [1]) for day in DAYS] and None))
        document = night.care()
        assert (document.outcome, document.committed_version) == (Outcome.CONFLICTED, None)
        assert document.reason == "lost a race for every unit; the next run plans again"
        assert {unit.outcome for unit in document.units} == {Outcome.CONFLICTED}

    def test_one_unit_lost_and_the_other_was_published(self, night: Night, opening: Opening) -> None:
        opening(lambda table: overtaken(table, lambda: night.engine.delete(DAYS[0], [1])))
        document = night.care()
        assert (document.outcome, document.reason) == (
            Outcome.CONFLICTED,
            "1 of 2 units lost a race; the next run plans them again",
        )
        assert {unit.partition: unit.outcome for unit in document.units} == {
            f"day={DAYS[0]}": Outcome.CONFLICTED,
            f"day={DAYS[1]}": Outcome.VERIFIED,
        }
        assert (document.base_version, document.parent_version, document.committed_version) == (6, 7, 8)
        assert [commit.version for commit in document.commits] == [8]


class TestFailed:
    def test_evidence_is_reported(self, night: Night) -> None:
        night.engine.store.files["version-6.json"] = b"{"
        document = night.care()
        assert document.outcome is Outcome.FAILED
        assert document.reason is not None
        assert document.reason.startswith("CorruptMetadata: ")
        assert "version-6.json" in document.reason

    def test_an_unknown_outcome_is_reported_and_the_retry_finds_out(self, night: Night, opening: Opening) -> None:
        opening(lambda table: unanswered(table, done=False))
        assert "UnknownOutcome" in str(night.care().reason)
        opening(lambda table: table)
        assert night.care().outcome is Outcome.VERIFIED

    def test_storage_that_does_not_answer(self, night: Night, opening: Opening) -> None:
        def unreachable(table: object) -> object:
            raise OSError("no route to host")

        opening(unreachable)
        document = night.care()
        assert (document.outcome, document.reason) == (Outcome.FAILED, "OSError: no route to host")

    def test_a_surprise_has_a_document_too(self, night: Night) -> None:
        document = failed(night.policy(), night.order("night"), "KeyError: 'x'")
        assert (document.outcome, document.reason, document.run_id) == (Outcome.FAILED, "KeyError: 'x'", "night")


class TestRetry:
    def test_finds_the_commit_of_an_earlier_attempt(self, night: Night) -> None:
        first = night.care()
        before = night.contents
        again = night.care()
        assert again.outcome is Outcome.VERIFIED
        assert again.reason == "version 7 was published by an earlier attempt of this run"
        assert (again.committed_version, again.commits) == (7, first.commits)
        assert night.contents == before

    def test_reports_again_what_the_earlier_attempt_reported(self, night: Night) -> None:
        first = night.care()
        store(first, night.reports)
        assert night.care() == first

    def test_of_another_run_plans_for_itself(self, night: Night) -> None:
        night.care("monday")
        assert night.care("tuesday").outcome is Outcome.UNCHANGED


class TestBatches:
    """Every unit a batch, and so a commit, of its own."""

    FIRST, SECOND = (UnitKey(f"day={day}") for day in reversed(DAYS))
    """The second day's files were written later and are not smaller: its unit comes first."""

    @pytest.fixture(autouse=True)
    def larger_second_day(self, night: Night) -> None:
        night.engine.append(DAYS[1], range(200, 400))

    def care(self, night: Night, run_id: str = "night", **settings: Any) -> RunDocument:
        return night.care(run_id, commit_size=1, **settings)

    def latest(self, night: Night) -> int:
        return open_table(night.engine.address).snapshot().version

    def outcomes(self, document: RunDocument) -> dict[str, Outcome]:
        return {unit.partition: unit.outcome for unit in document.units}

    def test_each_has_a_commit_of_its_own(self, night: Night) -> None:
        document = self.care(night)
        assert (document.outcome, document.reason) == (Outcome.VERIFIED, None)
        assert (document.base_version, document.parent_version, document.committed_version) == (7, 8, 9)
        assert [(c.version, c.parent_version, c.units) for c in document.commits] == [
            (8, 7, (self.FIRST,)),
            (9, 8, (self.SECOND,)),
        ]
        assert [unit.partition for unit in document.units] == [self.FIRST.partition, self.SECOND.partition]
        assert list(document.metrics.seconds) == ["plan", "rewrite", "verify", "publish"]
        assert (document.metrics.files_before, document.metrics.files_after) == (5, 2)
        assert (document.metrics.rows, document.metrics.extra["rows_written"]) == (370, 370)
        assert night.opened == 1
        assert self.care(night, "next").outcome is Outcome.UNCHANGED

    def test_the_size_of_a_commit_is_the_policys(self, night: Night) -> None:
        assert len(night.care(commit_size=1 << 30).commits) == 1

    @pytest.mark.parametrize("after", [0, 1])
    def test_a_race_that_the_second_loses_costs_the_first_nothing(
        self, night: Night, opening: Opening, after: int
    ) -> None:
        second = self.SECOND.partition.removeprefix("day=")
        opening(lambda table: overtaken(table, lambda: night.engine.delete(second, [1]), after=after))
        document = self.care(night)
        assert (document.outcome, document.reason) == (
            Outcome.CONFLICTED,
            "1 of 2 units lost a race; the next run plans them again",
        )
        assert self.outcomes(document) == {
            self.FIRST.partition: Outcome.VERIFIED,
            self.SECOND.partition: Outcome.CONFLICTED,
        }
        (commit,) = document.commits
        assert (commit.version, commit.units) == (9 - after, (self.FIRST,))
        assert document.committed_version == commit.version
        opening(lambda table: table)
        (again,) = self.care(night, "next").commits
        assert again.units == (self.SECOND,)

    def test_an_append_between_two_of_them_is_rebased_on(self, night: Night, opening: Opening) -> None:
        opening(lambda table: overtaken(table, lambda: night.engine.append(DAYS[0], [900]), after=1))
        document = self.care(night)
        assert document.outcome is Outcome.VERIFIED
        assert [(commit.version, commit.parent_version) for commit in document.commits] == [(8, 7), (10, 9)]

    def test_another_attempt_of_the_run_that_commits_between_them_is_a_rival(
        self, night: Night, opening: Opening
    ) -> None:
        files = night.engine.store.files

        def again() -> None:
            theirs = json.loads(files["version-8.json"]) | {"version": 9, "staged_as": "staged by the other"}
            files["version-9.json"] = json.dumps(theirs).encode()

        opening(lambda table: overtaken(table, again, after=1))
        document = self.care(night)
        # Whoever made it: what the run published is to be checked.
        assert [commit.version for commit in document.commits] == [8, 9]
        assert [unit.reason for unit in document.units] == [None, "another attempt of this run committed version 9"]

    def test_a_mismatch_in_the_second_publishes_it_not_and_leaves_the_rest(
        self, night: Night, opening: Opening
    ) -> None:
        night.engine.append("2026-11-03", [1])
        night.engine.append("2026-11-03", [2])
        opening(lambda table: lossy(table, self.SECOND))
        before = night.contents
        document = self.care(night)
        assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, 10)
        assert self.outcomes(document) == {
            self.FIRST.partition: Outcome.VERIFIED,
            self.SECOND.partition: Outcome.MISMATCH,
        }
        assert [commit.units for commit in document.commits] == [(self.FIRST,)]
        assert self.latest(night) == 10
        written = [name for name in night.contents.keys() - before.keys() if name.startswith("data-")]
        assert len(written) == 2
        staged = document.extra["evidence"]
        assert isinstance(staged, list)
        assert set(staged) <= night.contents.keys()

    def test_a_failure_in_the_second_reports_the_first(self, night: Night, opening: Opening) -> None:
        opening(lambda table: unanswered(table, done=False, after=1))
        document = self.care(night)
        assert document.outcome is Outcome.FAILED
        assert str(document.reason).startswith("UnknownOutcome: ")
        assert (document.committed_version, [commit.units for commit in document.commits]) == (8, [(self.FIRST,)])
        assert self.outcomes(document) == {
            self.FIRST.partition: Outcome.VERIFIED,
            self.SECOND.partition: Outcome.FAILED,
        }
        assert published_outcome(document) is Outcome.FAILED

    def test_a_retry_finds_what_was_published(self, night: Night, opening: Opening) -> None:
        opening(lambda table: unanswered(table, done=False, after=1))
        self.care(night)
        opening(lambda table: table)
        again = self.care(night)
        assert (again.outcome, [commit.units for commit in again.commits]) == (Outcome.VERIFIED, [(self.FIRST,)])

    def test_a_retry_finds_everything_that_was_published(self, night: Night) -> None:
        first = self.care(night)
        again = self.care(night)
        assert (again.outcome, again.reason) == (
            Outcome.VERIFIED,
            "versions 8, 9 were published by an earlier attempt of this run",
        )
        assert (again.base_version, again.parent_version, again.committed_version) == (7, 8, 9)
        assert again.commits == first.commits

    @pytest.mark.parametrize("known", [0, 1])
    def test_a_document_that_leaves_out_a_version_is_not_reported_again(self, night: Night, known: int) -> None:
        first = self.care(night)
        store(replace(first, commits=first.commits[known : known + 1]), night.reports)
        assert [commit.version for commit in self.care(night).commits] == [8, 9]

    def test_a_document_that_knows_of_a_version_that_expired_is_reported_again(
        self, night: Night, opening: Opening
    ) -> None:
        def expired(table: OpenTable) -> OpenTable:
            return finding(table, lambda run: table.commits.committed(run)[1:])

        first = self.care(night)
        store(first, night.reports)
        opening(expired)
        assert self.care(night) == first


def finding(table: OpenTable, committed: Callable[[Run], tuple[Committed, ...]]) -> OpenTable:
    """The table with other commits of a run."""
    return replace(table, commits=replace(table.commits, committed=committed))


def late(table: OpenTable) -> OpenTable:
    """A commit of the run that is on its way when it is looked for first."""
    looks = [True]

    def committed(run: Run) -> tuple[Committed, ...]:
        if looks:
            looks.pop()
            return ()
        return table.commits.committed(run)

    return finding(table, committed)


class TestALateCommitOfTheRun:
    """An earlier attempt's request was still under way when its retry looked for it."""

    def assert_found(self, document: RunDocument) -> None:
        assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 7)
        assert document.reason == "version 7 was published by an earlier attempt of this run"
        assert (document.units, document.awaits_check) == ((), True)

    def test_is_why_there_is_nothing_to_do(self, night: Night, opening: Opening) -> None:
        night.care()
        opening(late)
        self.assert_found(night.care())

    def test_is_looked_for_before_a_table_is_refused(self, night: Night, opening: Opening) -> None:
        def refuse(found: Snapshot, request: Request) -> None:
            raise RefusedTable(night.engine.address.name, "feature x is not handled", "wait")

        rules = {Operation.OPTIMIZE: OperationRules((refuse,), ())}
        night.care()
        opening(lambda table: replace(late(table), operations=rules))
        self.assert_found(night.care())
        assert night.care("another").outcome is Outcome.REFUSED

    def test_is_looked_for_before_a_race_is_called_lost(self, night: Night, opening: Opening) -> None:
        files, done = night.engine.store.files, []

        def arrive() -> None:
            files.update(done)

        before = night.contents
        night.care()
        done += [(name, data) for name, data in files.items() if name not in before]
        for name, _ in done:
            del files[name]
        opening(lambda table: overtaken(table, arrive))
        self.assert_found(night.care())


class TestAVersionThatIsReplaced:
    """Somebody goes back to version 5, and what comes next has number 6 again."""

    def roll_back(self, night: Night, commits: int) -> None:
        del night.engine.store.files["version-6.json"]
        for number in range(commits):
            night.engine.append(DAYS[0], range(500 + number, 510 + number))

    @pytest.mark.parametrize("stage", ["execute", "verify", "publish"])
    @pytest.mark.parametrize("commits", [0, 1, 2, 5])
    def test_is_a_conflict(self, night: Night, monkeypatch: pytest.MonkeyPatch, stage: str, commits: int) -> None:
        work = getattr(care_module, stage)

        def late(*arguments: Any, **named: Any) -> Any:
            self.roll_back(night, commits)
            return work(*arguments, **named)

        monkeypatch.setattr(care_module, stage, late)
        document = night.care()
        assert (document.outcome, document.committed_version) == (Outcome.CONFLICTED, None), document.reason
        reasons = {unit.reason for unit in document.units}
        expected = "which was planned on, is gone" if commits == 0 else "not the one that was planned on"
        assert len(reasons) == 1 and expected in str(reasons)
        assert not [
            name for name in night.contents if "staged-" in name or f"-{run_token('night', 'optimize')}-" in name
        ]

    def test_a_rest_of_batches_is_not_started(self, night: Night, opening: Opening) -> None:
        begun = []

        def counting(table: OpenTable) -> OpenTable:
            def rewrite(task: Any, run: Run) -> Rewrite:
                begun.append(task)
                return table.rewrite(task, run)

            return replace(overtaken(table, lambda: self.roll_back(night, 1)), rewrite=rewrite)

        opening(counting)
        document = night.care(commit_size=1)
        assert document.outcome is Outcome.CONFLICTED
        assert (len(begun), len(document.units)) == (1, 2)

    def test_in_the_moment_of_the_commit_holds_the_table(self, night: Night, opening: Opening) -> None:
        def replaced(table: OpenTable) -> OpenTable:
            def commit(candidate: Candidate) -> bool:
                won = table.commits.commit(candidate)
                files = night.engine.store.files
                files["version-6.json"] = files["version-5.json"].replace(b'"version": 5', b'"version": 6')
                return won

            return committing(table, commit)

        opening(replaced)
        document = night.care()
        assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, 7)
        assert "version 6, which it was staged on, is another; nothing was deleted; on hold" in str(document.reason)
        assert str(document.go_back).endswith("to version 6") and not document.awaits_check
        assert {unit.outcome for unit in document.units} == {Outcome.MISMATCH}
        opening(lambda table: table)
        assert night.care("next").outcome is Outcome.SKIPPED

    def test_after_the_commit_is_reported(self, night: Night, opening: Opening) -> None:
        def undone(table: OpenTable) -> OpenTable:
            def commit(candidate: Candidate) -> bool:
                won = table.commits.commit(candidate)
                del night.engine.store.files[f"version-{candidate.version}.json"]
                return won

            return replace(table, commits=replace(table.commits, commit=commit, visible=lambda candidate: True))

        opening(undone)
        document = night.care()
        assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 7)
        assert document.reason == "published version 7 is gone already: expired or rolled back"


@pytest.mark.parametrize(
    ("operation", "expected"), [(Operation.OPTIMIZE, "z-order by id"), (Operation.PERSIST_DELETES, "None")]
)
def test_clustering_is_asked_of_what_rewrites_files_and_reported(
    night: Night, opening: Opening, operation: Operation, expected: str
) -> None:
    asked: list[str] = []

    def rule(found: Snapshot, unit: Any, request: Request) -> None:
        asked.append(str(request.clustering))

    rules = {each: OperationRules((), (rule,)) for each in Operation}
    opening(lambda table: replace(table, operations=rules))
    order = replace(night.order("night"), operation=operation)
    document = run_operation(night.policy(clustering=Clustering(("id",), Curve.Z)), order, mapper=night.mapper)
    assert (document.outcome, {*asked}, str(document.plan.clustering)) == (Outcome.UNCHANGED, {expected}, expected)


class TestDocument:
    """JSON keys are a contract: what was promised first, then what was added since."""

    @pytest.fixture
    def document(self, night: Night) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(night.care().to_json()))
        return found

    def test_of_a_run(self, document: dict[str, Any]) -> None:
        assert list(document) == [
            "run_id",
            "table",
            "format",
            "operation",
            "outcome",
            "reason",
            "base_version",
            "parent_version",
            "committed_version",
            "commits",
            "plan",
            "units",
            "verification",
            "metrics",
            "expectations",
            "versions",
            "address",
            "started_at",
            "finished_at",
            "go_back",
            "base_identity",
            "table_id",
            "found_versions",
        ]

    def test_of_its_parts(self, document: dict[str, Any]) -> None:
        (commit,), planned, unit = document["commits"], document["plan"]["units"][0], document["units"][0]
        assert commit.keys() == {"version", "parent_version", "units"} | {"identity", "parent_identity"}
        assert document["plan"].keys() == {"units"} | {"version", "notes", "clustering", "clock_ms"}
        assert planned.keys() == {"partition", "bucket", "reason", "input_files", "input_bytes", "estimate"}
        assert unit.keys() == {
            "partition",
            "bucket",
            "outcome",
            "reason",
            "rows",
            "base_fingerprint",
            "candidate_fingerprint",
            "equal",
        } | {"faults"}
        assert document["verification"].keys() == {"level", "share_of_rewrite"}
        assert document["expectations"].keys() == {"status", "results", "docs"} | {"coverage", "reason"}

    def test_of_its_metrics(self, document: dict[str, Any]) -> None:
        assert document["metrics"].keys() == {
            "files_before",
            "files_after",
            "bytes_before",
            "bytes_after",
            "rows",
            "deleted_rows_marked",
            "deletion_vectors",
            "peak_task_memory",
            "seconds",
        } | {
            "file_sizes_before",
            "file_sizes_after",
            "levels_before",
            "levels_after",
            "rows_written",
            "cpu_seconds",
            "executors",
            "predicted",
            "health",
            "score",
        }
        assert document["metrics"]["predicted"].keys() == {"files", "bytes", "seconds", "learned_from", "skipping"}

    def test_names_the_software_that_took_part(self, document: dict[str, Any]) -> None:
        assert document["versions"].keys() >= {"nightkeep", "python", "pyspark", "pyarrow"}
        assert document["expectations"]["status"] == "not_run"

    def test_is_the_same_for_every_ending(self, night: Night, document: dict[str, Any]) -> None:
        endings = [night.care(pause="wait"), night.care("other"), night.care("third", full=True)]
        assert {tuple(ending.to_json()) for ending in endings} == {tuple(document)}

    def test_of_a_dry_run_has_the_digest_of_its_plan_too(self, night: Night, document: dict[str, Any]) -> None:
        assert list(night.care(dry_run=True).to_json()) == [*document, "plan_digest"]


def test_an_address_that_names_no_table_is_the_callers_to_mend(tmp_path: Path) -> None:
    policy = EffectivePolicy(Address("memory", "nowhere", "nowhere"), Settings(), {})
    with pytest.raises(UsageError, match="nowhere"):
        run_operation(policy, Order(Operation.OPTIMIZE, "night", str(tmp_path)), mapper=lambda: inline)
