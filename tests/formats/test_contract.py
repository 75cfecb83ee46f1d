"""One contract, held by every format: what the stages rely on when they call a verb of protocol.py."""

import pickle
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table as Shop
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.memory_engine import MemoryEngine
from tests.formats.delta.hand_made import HandMade
from tests.formats.iceberg import runs
from tests.support.proofs import unit_faults
from tests.support.unlucky_tables import (
    counting_reads,
    faulty,
    faulty_unit,
    forgetful,
    garbled,
    misinformed,
    overruled,
    overtaken,
    unanswered,
)

from nightkeep.admission.order import Order
from nightkeep.errors import AddressError, CorruptMetadata, EvidenceError, MissingFile, RefusedTable, UnknownOutcome
from nightkeep.formats import open_table
from nightkeep.formats.memory.metadata.versions import SORTED
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import (
    Address,
    Candidate,
    Committed,
    Conflicted,
    Fingerprint,
    Mismatch,
    Operation,
    Outcome,
    Plan,
    Request,
    Rewrite,
    Run,
    UnitKey,
    Verified,
    VerifyLevel,
    VersionIdentity,
    View,
    run_token,
)
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol import OpenTable, Positions, Snapshot
from nightkeep.records import CommitResult, RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import MAX_ATTEMPTS, publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("kept_shop")

SAMPLES = Path(__file__).parents[2] / "samples" / "paimon" / "shop.db"
NOW_MS = 1_795_000_000_000


def unidentified(commit: CommitResult) -> CommitResult:
    return replace(commit, identity=None, parent_identity=None)


def agree(one: str | None, other: str | None) -> bool:
    assert one is not None and other is not None
    return VersionIdentity.parse(one).agrees(VersionIdentity.parse(other))


@dataclass(frozen=True)
class World:
    """A table with work in several partitions, and what others may do to it.

    `append` commits what a foreign writer adds to units that have work; `expire` forgets an older version;
    `contents` is every byte of the table; `public` names what our commit of a version creates or replaces under a
    name that is not ours.
    """

    address: Address
    operation: Operation
    append: Callable[[], None]
    expire: Callable[[int], None]
    contents: Callable[[], Mapping[str, bytes]]
    public: Callable[[int], set[str]]
    reports: Path

    @property
    def table(self) -> OpenTable:
        """Opened anew each time, so that nothing is remembered."""
        return open_table(self.address)

    @property
    def where(self) -> str:
        """A filter that selects some of the partitions."""
        (column, value), *_ = self.table.snapshot().units[0].partition.items()
        return f"{column} = '{value}'"

    def plan(self, where: str | None = None) -> Plan:
        return plan(self.table, self.table.snapshot(), Request(self.operation, NOW_MS, where))

    def staged(self, run: Run, where: str | None = None) -> tuple[Plan, tuple[Rewrite, ...], Candidate]:
        planned = self.plan(where)
        rewrites = execute(self.table, planned, run, mapper=inline)
        return planned, rewrites, self.table.commits.stage(self.table.snapshot(planned.version), rewrites, run)

    def verified(self, run: Run, where: str | None = None) -> Verified:
        checked = verify(self.table, *self.staged(run, where), level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Verified), checked
        return checked

    def published(self, run: Run, where: str | None = None) -> Committed:
        done = publish(self.table, self.verified(run, where), run)
        assert isinstance(done, Committed), done
        return done

    def care(self, run_id: str, *, dry_run: bool = False, **settings: Any) -> RunDocument:
        policy = EffectivePolicy(self.address, Settings().model_copy(update=settings), {})
        order = Order(self.operation, run_id, str(self.reports), dry_run)
        return run_operation(policy, order, mapper=lambda: inline)

    def content(self, view: View, version: int | None = None) -> Fingerprint:
        snapshot = self.table.snapshot(version)
        return total(self.table, snapshot.units, view)


def total(table: OpenTable, units: Iterable[Any], view: View) -> Fingerprint:
    parts = [rows_of(table, unit, table.gate.survivors(unit, view)) for unit in units]
    return sum(parts, start=Fingerprint())


def rows_of(table: OpenTable, unit: Any, positions: Positions) -> Fingerprint:
    return sum((fingerprint(batch) for batch in table.gate.rows(unit, positions)), start=Fingerprint())


def a_run(run_id: str = "night") -> Run:
    """A new attempt of the run."""
    return Run(run_id, run_token(run_id, Operation.UPGRADE), uuid.uuid4().hex[:8], NOW_MS)


def keys(plan_: Plan) -> set[UnitKey]:
    return {unit.key for unit in plan_.units}


class FormatContract:
    """What a format owes; a subclass brings the world."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        raise NotImplementedError

    # plan

    def test_the_world_has_work_inside_and_outside_of_the_filter(self, world: World) -> None:
        inside = keys(world.plan(world.where))
        assert inside and inside < keys(world.plan())

    def test_planning_is_pure(self, world: World) -> None:
        snapshot, before = world.table.snapshot(), world.contents()
        request = Request(world.operation, NOW_MS)
        first, second = (plan(world.table, snapshot, request) for _ in range(2))
        assert first == second == world.plan()
        assert first.version == snapshot.version
        assert world.contents() == before

    def test_a_plan_states_why_and_names_files_that_exist(self, world: World) -> None:
        units = world.plan().units
        assert all(unit.input_files and unit.input_bytes > 0 and unit.reason for unit in units)
        held = {name.rpartition("/")[2] for name in world.contents()}
        assert {name.rpartition("/")[2] for unit in units for name in unit.input_files} <= held

    def test_an_unknown_operation_is_refused_with_those_that_exist(self, world: World) -> None:
        unknown = next(operation for operation in Operation if operation not in world.table.operations)
        with pytest.raises(RefusedTable, match=f"operation {unknown} .* operations that do: .*{world.operation}"):
            plan(world.table, world.table.snapshot(), Request(unknown, NOW_MS))

    def test_what_a_task_needs_survives_pickling(self, world: World) -> None:
        values = [world.table, *world.table.snapshot().units, *(unit.tasks for unit in world.plan().units)]
        assert pickle.loads(pickle.dumps(values)) == values

    def test_what_a_night_does_by_default_is_offered(self, world: World) -> None:
        policy = EffectivePolicy(world.address, Settings(), {})
        assert policy.operations
        assert {*policy.operations} <= world.table.operations.keys()

    # read

    def test_a_snapshot_never_changes(self, world: World) -> None:
        before, content = world.table.snapshot(), world.content(View.MERGED)
        world.append()
        world.published(a_run())
        again = world.table.snapshot(before.version)
        assert (again.version, again.units, again.sizes) == (before.version, before.units, before.sizes)
        assert world.content(View.MERGED, before.version) == content

    def test_rows_are_those_asked_for(self, world: World) -> None:
        table = world.table
        for unit in table.snapshot().units:
            every = table.gate.survivors(unit, View.MERGED)
            some = {name: bitmap[: len(bitmap) // 2] for name, bitmap in every.items()}
            rest = {name: bitmap - some[name] for name, bitmap in every.items()}
            assert rows_of(table, unit, every).rows == sum(map(len, every.values())) > 0
            assert rows_of(table, unit, some) + rows_of(table, unit, rest) == rows_of(table, unit, every)

    def test_rows_come_with_one_schema(self, world: World) -> None:
        table = world.table
        batches = [b for u in table.snapshot().units for b in table.gate.rows(u, table.gate.survivors(u, View.MERGED))]
        assert len({str(batch.schema.remove_metadata()) for batch in batches}) == 1

    def test_a_version_that_does_not_exist_is_missing(self, world: World) -> None:
        with pytest.raises(MissingFile):
            world.table.snapshot(4711)

    # rewrite and stage

    def test_staging_makes_nothing_visible(self, world: World) -> None:
        before, content = world.table.snapshot(), world.content(View.RAW)
        world.staged(a_run())
        after = world.table.snapshot()
        assert (after.version, after.units) == (before.version, before.units)
        assert world.content(View.RAW) == content

    def test_every_new_file_carries_the_token_of_its_run_and_is_listed(self, world: World) -> None:
        run, before = a_run(), world.contents()
        _, _, candidate = world.staged(run)
        created = world.contents().keys() - before.keys()
        assert created == set(candidate.staged)
        assert all(run.token in name for name in created)

    def test_two_attempts_never_name_one_file(self, world: World) -> None:
        _, _, first = world.staged(a_run())
        _, _, second = world.staged(a_run())
        assert not set(first.staged) & set(second.staged)

    def test_a_task_that_runs_twice_never_names_one_file(self, world: World) -> None:
        """As Spark does with a task that is slow or was lost, within one attempt of the run."""
        planned, run = world.plan(), a_run()
        first, second = (execute(world.table, planned, run, mapper=inline) for _ in range(2))
        assert not {n for r in first for n in r.outputs} & {n for r in second for n in r.outputs}

    def test_a_candidate_is_decoded_from_its_bytes(self, world: World) -> None:
        run = a_run()
        _, _, candidate = world.staged(run)
        staged = world.table.staged(pickle.loads(pickle.dumps(candidate)))
        assert (staged.version, candidate.parent_version) == (candidate.version, world.table.snapshot().version)
        assert world.table.commits.commit(candidate)
        assert staged.units == world.table.snapshot(candidate.version).units

    def test_a_candidate_without_its_bytes_is_no_candidate(self, world: World) -> None:
        _, _, candidate = world.staged(a_run())
        world.table.commits.discard([candidate.metadata])
        with pytest.raises(EvidenceError):
            world.table.staged(candidate)

    def test_a_candidate_shows_raw_what_the_base_holds_merged(self, world: World) -> None:
        _, _, candidate = world.staged(a_run())
        base, staged = world.table.snapshot(), world.table.staged(candidate)
        for before, after in pairs(base, staged, candidate.units):
            truth = total(world.table, [before], View.MERGED)
            assert total(world.table, [after], View.RAW) == truth == total(world.table, [after], View.MERGED)
            assert not unit_faults(world.table.gate, before, after)
        assert not world.table.gate.faults(base, staged, candidate.units)

    def test_a_change_outside_the_touched_units_is_a_fault(self, world: World) -> None:
        _, _, candidate = world.staged(a_run())
        staged = world.table.staged(candidate)
        assert world.table.gate.faults(world.table.snapshot(), staged, candidate.units[1:])

    def test_discarding_removes_exactly_what_was_staged(self, world: World) -> None:
        before = world.contents()
        _, _, candidate = world.staged(a_run())
        world.table.commits.discard(candidate.staged)
        assert world.contents() == before
        world.table.commits.discard(candidate.staged)

    # commit

    def test_of_two_candidates_for_one_version_one_is_committed(self, world: World) -> None:
        winner, loser = (world.staged(a_run(name))[2] for name in ("first", "second"))
        assert not world.table.commits.visible(winner)
        assert world.table.commits.commit(winner)
        content = world.contents()
        assert not world.table.commits.commit(loser)
        assert not world.table.commits.commit(winner)
        assert world.contents() == content
        assert [world.table.commits.visible(candidate) for candidate in (winner, loser, winner, loser)] == [
            True,
            False,
            True,
            False,
        ]

    def test_of_many_commits_at_once_one_is_done(self, world: World) -> None:
        candidates = [world.staged(a_run(f"run {n}"), world.where)[2] for n in range(6)]
        gate = Barrier(len(candidates))

        def commit(candidate: Candidate) -> bool:
            gate.wait()
            return world.table.commits.commit(candidate)

        with ThreadPoolExecutor(len(candidates)) as pool:
            won = list(pool.map(commit, candidates))
        assert won.count(True) == 1
        assert [world.table.commits.visible(candidate) for candidate in candidates] == won

    def test_a_commit_shows_nothing_but_its_own_names(self, world: World) -> None:
        run, before = a_run(), world.contents()
        done = world.published(run)
        after = world.contents()
        assert {name for name in after.keys() - before.keys() if run.token not in name} <= world.public(done.version)
        assert {name for name in before if after.get(name) != before[name]} <= world.public(done.version)

    def test_a_run_finds_its_own_commit_in_any_attempt(self, world: World) -> None:
        assert world.table.commits.committed(a_run()) == ()
        done = world.published(a_run(), world.where)
        later = world.published(a_run("later"))
        assert found(*world.table.commits.committed(a_run())) == found(done)
        assert found(*world.table.commits.committed(a_run("later"))) == found(later) != found(done)
        assert world.table.commits.committed(a_run("another")) == ()

    def test_a_run_finds_all_its_commits_oldest_first(self, world: World) -> None:
        first, again = world.published(a_run(), world.where), a_run()
        other = publish(world.table, world.verified(again), again, earlier=[first.version])
        assert isinstance(other, Committed)
        assert [found(each) for each in world.table.commits.committed(a_run())] == [found(first), found(other)]
        assert other.parent_version == first.version

    def test_any_commit_of_another_attempt_is_a_rival(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        theirs, again = world.published(a_run(), world.where), a_run()
        mine = publish(world.table, world.verified(again), again, earlier=[theirs.version])
        assert isinstance(mine, Committed)
        done = publish(world.table, checked, run, earlier=[mine.version])
        assert isinstance(done, Conflicted)
        assert {reason for _, reason in done.units} == {
            f"another attempt of this run committed version {theirs.version}"
        }

    def test_after_a_run_there_is_nothing_to_do_and_an_empty_plan_commits_nothing(self, world: World) -> None:
        base = world.content(View.MERGED)
        first = world.care("first")
        assert first.outcome is Outcome.VERIFIED
        assert world.content(View.MERGED) == world.content(View.RAW) == base
        before = world.contents()
        second = world.care("second")
        assert (second.outcome, second.plan.units) == (Outcome.UNCHANGED, ())
        assert world.contents() == before

    def test_each_batch_of_a_run_has_a_commit_of_its_own(self, world: World) -> None:
        content, planned = world.content(View.MERGED), world.plan()
        document = world.care("night", commit_size=1)
        assert (document.outcome, document.reason) == (Outcome.VERIFIED, None)
        assert [commit.units for commit in document.commits] == [(unit.key,) for unit in planned.units]
        assert world.content(View.MERGED) == world.content(View.RAW) == content
        again = world.care("night").commits
        assert [unidentified(commit) for commit in again] == [unidentified(commit) for commit in document.commits]
        for found, committed in zip(again, document.commits, strict=True):
            # A later attempt does not read what is below a version that it finds.
            assert agree(found.identity, committed.identity) and agree(found.parent_identity, committed.parent_identity)

    def test_a_dry_run_writes_nothing(self, world: World) -> None:
        before = world.contents()
        document = world.care("dry", dry_run=True)
        assert document.outcome is Outcome.SKIPPED
        assert len(document.plan.units) == len(world.plan().units)
        assert world.contents() == before

    def test_a_filter_keeps_other_partitions_as_they_are(self, world: World) -> None:
        before = {unit.key: world.table.gate.shown(unit) for unit in world.table.snapshot().units}
        done = world.published(a_run(), world.where)
        after = {unit.key: world.table.gate.shown(unit) for unit in world.table.snapshot().units}
        assert {key for key in before if after[key] != before[key]} == set(done.units)
        assert set(done.units) < before.keys()

    # races

    def test_an_unchanged_head_conflicts_with_nothing(self, world: World) -> None:
        planned, rewrites, _ = world.staged(a_run())
        assert (
            world.table.commits.conflicts(world.table.snapshot(planned.version), world.table.snapshot(), rewrites) == ()
        )

    def test_what_others_add_is_no_conflict_and_is_kept(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        world.append()
        head, content = world.table.snapshot(), world.content(View.MERGED)
        done = publish(world.table, checked, run)
        assert isinstance(done, Committed)
        assert done.parent_version == head.version != checked.plan.version
        assert (set(done.units), done.conflicted) == (keys(checked.plan), ())
        assert world.content(View.MERGED) == content

    def test_a_race_between_looking_and_committing_is_run_again(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        done = publish(overtaken(world.table, world.append), checked, run)
        assert isinstance(done, Committed)
        assert done.version == world.table.snapshot().version
        assert done.parent_version not in (done.version, checked.plan.version)

    def test_units_that_lost_are_left_out_and_their_files_removed(self, world: World) -> None:
        run, content = a_run(), world.content(View.MERGED)
        checked = world.verified(run)
        theirs = world.published(a_run("other"), world.where)
        done = publish(world.table, checked, run)
        assert isinstance(done, Committed)
        assert {key for key, reason in done.conflicted if reason} == set(theirs.units)
        assert set(done.units) == keys(checked.plan) - set(theirs.units)
        lost = {name for r in checked.rewrites if r.key in theirs.units for name in r.outputs}
        assert lost and not lost & world.contents().keys()
        assert world.content(View.RAW) == world.content(View.MERGED) == content

    def test_a_run_that_lost_every_unit_leaves_nothing_behind(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        theirs = world.published(a_run("other"))
        done = publish(world.table, checked, run)
        assert isinstance(done, Conflicted)
        assert {key for key, _ in done.units} == set(theirs.units)
        assert not [name for name in world.contents() if run.token in name]

    def test_a_run_that_always_comes_second_gives_up(self, world: World) -> None:
        run, before = a_run(), world.contents()
        done = publish(overruled(world.table), world.verified(run), run)
        assert isinstance(done, Conflicted)
        assert {reason for _, reason in done.units} == {f"lost {MAX_ATTEMPTS} races in a row"}
        assert world.contents() == before

    def test_a_lost_answer_of_a_commit_that_happened_is_a_commit(self, world: World) -> None:
        run = a_run()
        done = publish(unanswered(world.table, done=True), world.verified(run), run)
        assert isinstance(done, Committed)
        assert found(*world.table.commits.committed(run)) == found(done)

    def test_a_commit_that_reports_that_it_lost_to_itself_is_a_commit(self, world: World) -> None:
        run = a_run()
        done = publish(misinformed(world.table), world.verified(run), run)
        assert isinstance(done, Committed)
        assert found(*world.table.commits.committed(run)) == found(done)

    def test_a_second_loss_is_reported_with_the_first(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        first = world.published(a_run("first"), world.where)
        done = publish(overtaken(world.table, lambda: world.published(a_run("second"))), checked, run)
        assert isinstance(done, Conflicted)
        assert {key for key, _ in done.units} == keys(checked.plan) > set(first.units)

    def test_another_attempt_that_was_alive_after_all_is_not_repeated(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        earlier = world.published(a_run())
        done = publish(world.table, checked, run)
        assert isinstance(done, Conflicted)
        assert {reason for _, reason in done.units} == {
            f"another attempt of this run committed version {earlier.version}"
        }
        assert not set(checked.candidate.staged) & world.contents().keys()

    def test_a_planned_version_that_expired_is_a_lost_race(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        world.append()
        before = world.contents().keys() - set(checked.candidate.staged)
        world.expire(checked.plan.version)
        done = publish(world.table, checked, run)
        assert isinstance(done, Conflicted)
        assert {key for key, _ in done.units} == keys(checked.plan)
        assert len(before - world.contents().keys()) == 1
        assert not [name for name in world.contents() if run.token in name]

    def test_a_candidate_that_vanished_is_evidence_and_nothing_goes(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        world.table.commits.discard([checked.candidate.metadata])
        before = world.contents()
        with pytest.raises(MissingFile):
            publish(world.table, checked, run)
        assert world.contents() == before

    def test_a_rebased_candidate_must_make_the_change_that_was_proven(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        world.append()
        with pytest.raises(EvidenceError, match="not the change that was proven"):
            publish(forgetful(world.table), checked, run)
        assert world.table.commits.committed(run) == ()

    def test_a_rebased_candidate_must_be_without_fault(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        world.append()
        with pytest.raises(EvidenceError, match="counted 1, expected 2"):
            publish(faulty(world.table), checked, run)
        assert world.table.commits.committed(run) == ()

    def test_an_unknown_outcome_deletes_nothing(self, world: World) -> None:
        run = a_run()
        checked = world.verified(run)
        before = world.contents()
        with pytest.raises(UnknownOutcome, match=f"version {checked.candidate.version}"):
            publish(unanswered(world.table, done=False), checked, run)
        assert world.contents() == before

    # gate

    @pytest.mark.parametrize("level", VerifyLevel)
    def test_the_gate_proves_every_unit_at_each_level(self, world: World, level: VerifyLevel) -> None:
        planned, rewrites, candidate = world.staged(a_run())
        checked = verify(world.table, planned, rewrites, candidate, level=level, mapper=inline)
        assert isinstance(checked, Verified)
        rows = {u.key: total(world.table, [u], View.MERGED).rows for u in world.table.snapshot().units}
        assert {proof.key: proof.base.rows for proof in checked.proofs} == {key: rows[key] for key in keys(planned)}

    def test_a_fault_of_the_version_alone_is_a_mismatch(self, world: World) -> None:
        checked = verify(faulty(world.table), *world.staged(a_run()), level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Mismatch)
        assert checked.faults == ("counted 1, expected 2",)
        assert all(proof.proven for proof in checked.proofs)

    def test_a_fault_of_one_unit_alone_is_a_mismatch(self, world: World) -> None:
        planned, rewrites, candidate = world.staged(a_run())
        table = faulty_unit(world.table, candidate.units[0])
        checked = verify(table, planned, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Mismatch)
        assert [proof.key for proof in checked.proofs if not proof.proven] == [candidate.units[0]]
        assert all(proof.base == proof.candidate for proof in checked.proofs)

    def test_a_candidate_that_lost_a_unit_is_evidence(self, world: World) -> None:
        planned, rewrites, candidate = world.staged(a_run())
        claimed = replace(candidate, units=(*candidate.units, UnitKey("no such unit")))
        with pytest.raises(EvidenceError, match="no such unit"):
            verify(world.table, planned, rewrites, claimed, level=VerifyLevel.FULL, mapper=inline)


def pairs(base: Snapshot, staged: Snapshot, touched: Sequence[UnitKey]) -> list[tuple[Any, Any]]:
    after = {unit.key: unit for unit in staged.units}
    return [(unit, after[unit.key]) for unit in base.units if unit.key in touched]


def found(done: Committed | None) -> tuple[int, int, set[UnitKey]]:
    assert done is not None
    return done.version, done.parent_version, set(done.units)


DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


@pytest.fixture
def engine(tmp_path: Path) -> MemoryEngine:
    """Two days with small files and deletes, and one with nothing to do."""
    engine = MemoryEngine(str(tmp_path))
    for start in (0, 100, 200):
        engine.append(DAYS[0], range(start, start + 40))
        engine.append(DAYS[1], range(start, start + 40))
    engine.append(DAYS[2], range(10))
    engine.delete(DAYS[0], range(30, 130))
    return engine


class TestMemory(FormatContract):
    @pytest.fixture
    def world(self, engine: MemoryEngine, tmp_path: Path) -> World:
        return World(
            address=engine.address,
            operation=Operation.OPTIMIZE,
            append=lambda: engine.append(DAYS[0], range(1000, 1010)),
            expire=lambda version: engine.store.files.pop(f"version-{version}.json") and None,
            contents=lambda: dict(engine.store.files),
            public=lambda version: {f"version-{version}.json"},
            reports=tmp_path / "reports",
        )

    def test_readers_find_the_rows_that_the_engine_wrote(self, world: World, engine: MemoryEngine) -> None:
        assert rows_by_day(world.table) == engine.rows
        world.published(a_run())
        assert rows_by_day(world.table) == engine.rows

    def test_a_partition_whose_rows_are_all_deleted_is_proven_and_left_empty(
        self, world: World, engine: MemoryEngine
    ) -> None:
        engine.delete(DAYS[1], range(1000))
        done = world.published(a_run())
        assert UnitKey(f"day={DAYS[1]}") in done.units
        assert [len(unit.files) for unit in world.table.snapshot().units] == [1, 0, 1]

    def test_deletes_that_came_in_between_are_a_conflict(self, world: World, engine: MemoryEngine) -> None:
        run = a_run()
        checked = world.verified(run)
        engine.delete(DAYS[0], [5])
        done = publish(world.table, checked, run)
        assert isinstance(done, Committed)
        assert [str(key) for key, _ in done.conflicted] == [f"day={DAYS[0]}"]
        assert rows_by_day(world.table) == engine.rows

    def test_a_commit_between_our_look_and_our_write_wins(
        self, world: World, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        winner, loser = (world.staged(a_run(name))[2] for name in ("first", "second"))
        read = engine.store.read

        def overtaken(name: str) -> bytes:
            if name == loser.metadata:
                assert world.table.commits.commit(winner)
            return read(name)

        monkeypatch.setattr(engine.store, "read", overtaken)
        assert not world.table.commits.commit(loser)
        assert world.table.commits.visible(winner)

    def test_one_changed_value_is_a_mismatch_of_its_unit(self, world: World) -> None:
        run, table = a_run(), garbled(world.table)
        planned = world.plan()
        rewrites = execute(table, planned, run, mapper=inline)
        candidate = table.commits.stage(table.snapshot(), rewrites, run)
        checked = verify(table, planned, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Mismatch)
        assert checked.faults == ()
        assert all(p.base.rows == p.candidate.rows and not p.faults and not p.proven for p in checked.proofs)

    def test_a_feature_that_is_not_known_is_refused_before_planning(self, tmp_path: Path) -> None:
        odd = MemoryEngine(str(tmp_path), features=["row-ids"])
        with pytest.raises(RefusedTable, match="feature row-ids is not handled"):
            open_table(odd.address).snapshot()

    def test_a_feature_that_the_operation_would_break_is_refused_by_it(self, tmp_path: Path) -> None:
        table = open_table(MemoryEngine(str(tmp_path), features=[SORTED]).address)
        with pytest.raises(RefusedTable, match="feature sorted is not kept by optimize"):
            plan(table, table.snapshot(), Request(Operation.OPTIMIZE, NOW_MS))

    def test_a_version_that_is_no_version_is_named(self, world: World, engine: MemoryEngine) -> None:
        engine.store.files["version-4711.json"] = b'{"units": []}'
        with pytest.raises(CorruptMetadata, match=r"version-4711\.json: expected a version of a table in memory"):
            world.table.snapshot()

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            ({"rows": 41}, "40 rows, metadata states"),
            ({"bytes": 1}, "bytes and 40 rows, metadata states 1"),
            ({"deleted_rows": 9}, "10 positions, expected 9"),
        ],
    )
    def test_metadata_that_differs_from_the_bytes_is_a_fault(
        self, world: World, change: dict[str, int], fault: str
    ) -> None:
        unit = world.table.snapshot().units[0]
        broken = replace(unit, files=(replace(unit.files[0], **change),))  # type: ignore[arg-type]
        assert fault in "; ".join(unit_faults(world.table.gate, unit, broken))

    def test_a_table_that_this_process_does_not_have_is_no_address(self) -> None:
        with pytest.raises(AddressError, match="expected a table of this process"):
            open_table(Address("memory", "nowhere", "nowhere"))


class TestPaimon(FormatContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        """The last commit of the engine waits outside until a test wants a foreign writer."""
        folder, waiting = tmp_path / "orders", tmp_path / "snapshot-7"
        shutil.copytree(SAMPLES / "orders", folder)
        (folder / "snapshot/snapshot-7").rename(waiting)
        (folder / "snapshot/LATEST").write_text("6")
        return World(
            address=Address("paimon", str(folder), "shop.orders"),
            operation=Operation.UPGRADE,
            append=lambda: _put_back(waiting, folder / "snapshot"),
            expire=lambda version: (folder / f"snapshot/snapshot-{version}").unlink(),
            contents=lambda: {
                str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
            },
            public=lambda version: {f"snapshot/snapshot-{version}", "snapshot/LATEST"},
            reports=tmp_path / "reports",
        )

    def test_rows_that_only_a_merge_would_show_are_missing(self, world: World) -> None:
        planned, rewrites, _ = world.staged(a_run())
        candidate = forgetful(world.table).commits.stage(world.table.snapshot(planned.version), rewrites, a_run())
        checked = verify(world.table, planned, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Mismatch)
        (left,) = (proof for proof in checked.proofs if not proof.proven)
        assert left.key == candidate.units[-1]
        assert left.candidate.rows != left.base.rows

    def test_the_level_decides_which_rows_are_read(self, world: World) -> None:
        """Rows that stay in place are read once by `full` and not at all by `touched`; others on both sides."""
        staged, counts = world.staged(a_run()), dict[VerifyLevel, int]()
        for level in VerifyLevel:
            reading, asked = counting_reads(world.table)
            checked = verify(reading, *staged, level=level, mapper=inline)
            assert isinstance(checked, Verified)
            shown = sum(proof.base.rows for proof in checked.proofs)
            counts[level] = sum(asked)
        moved = counts[VerifyLevel.TOUCHED] // 2
        assert 0 < moved < shown
        assert counts[VerifyLevel.FULL] == shown + moved


def _put_back(snapshot: Path, folder: Path) -> None:
    (folder / snapshot.name).hardlink_to(snapshot)
    (folder / "LATEST").write_text("7")


class TestDelta(FormatContract):
    @pytest.fixture
    def made(self, tmp_path: Path) -> HandMade:
        """Two days with small files and deletes, one with nothing to do, and one whose day is not known."""
        made = HandMade(tmp_path / "events")
        for start in (0, 100, 200):
            for day in (DAYS[0], DAYS[1], None):
                made.append(day, range(start, start + 40))
        made.append(DAYS[2], range(10))
        made.delete(DAYS[0], range(30, 130))
        return made

    @pytest.fixture
    def world(self, made: HandMade, tmp_path: Path) -> World:
        return World(
            address=Address("delta", str(made.folder), "shop.events"),
            operation=Operation.OPTIMIZE,
            append=lambda: made.append(DAYS[0], range(1000, 1010)),
            expire=made.expire,
            contents=made.contents,
            public=lambda version: {f"_delta_log/{version:020d}.json"},
            reports=tmp_path / "reports",
        )

    def test_readers_find_the_rows_that_were_written(self, world: World, made: HandMade) -> None:
        wanted = made.rows()
        assert delta_rows(world.table) == wanted
        world.published(a_run())
        assert delta_rows(world.table) == made.rows() == wanted

    def test_deletes_that_came_in_between_are_a_conflict(self, world: World, made: HandMade) -> None:
        run = a_run()
        checked = world.verified(run)
        made.delete(DAYS[1], [5])
        done = publish(world.table, checked, run)
        assert isinstance(done, Committed)
        assert [str(key) for key, _ in done.conflicted] == [f"day={DAYS[1]}"]
        assert delta_rows(world.table) == made.rows()

    @pytest.mark.parametrize(("level", "share"), [(VerifyLevel.FULL, 2), (VerifyLevel.TOUCHED, 2)])
    def test_rows_that_move_are_read_at_every_level(self, world: World, level: VerifyLevel, share: int) -> None:
        reading, asked = counting_reads(world.table)
        checked = verify(reading, *world.staged(a_run()), level=level, mapper=inline)
        assert isinstance(checked, Verified)
        assert sum(asked) == share * sum(proof.base.rows for proof in checked.proofs)


@pytest.fixture(scope="module", params=[2, 3])
def kept_shop(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[runs.Kept]:
    """Two days with equality deletes, position deletes of v2 and vectors of v3, and a day with nothing to do."""
    warehouse = Warehouse(f"contract{request.param}", tmp_path_factory.mktemp("contract"))
    with runs.configured(warehouse):
        table = warehouse.table("shop.events")
        runs.changed(iceberg_java, table, version=request.param)
        yield runs.Kept.of(table)


class TestIceberg(FormatContract):
    operation = Operation.PERSIST_DELETES

    @pytest.fixture
    def shop(self, kept_shop: runs.Kept) -> Shop:
        return kept_shop.put_back()

    @pytest.fixture
    def world(self, shop: Shop, iceberg_java: IcebergJava, tmp_path: Path) -> World:
        more = [runs.row(DAYS[0], number) for number in range(1000, 1010)]
        return World(
            address=runs.address(shop),
            operation=self.operation,
            append=lambda: iceberg_java.append(shop, more) and None,
            expire=lambda version: iceberg_java.expire(shop, snapshots=[version]) and None,
            contents=lambda: runs.contents(shop),
            public=lambda version: {str(shop.metadata)[1:]},
            reports=tmp_path / "reports",
        )

    def test_readers_find_the_rows_that_were_written(self, world: World, shop: Shop, iceberg_java: IcebergJava) -> None:
        wanted = iceberg_java.read(shop)
        world.published(a_run())
        assert iceberg_java.read(shop) == wanted
        assert not [task for task in iceberg_java.tasks(shop) for each in task["deletes"] if each["content"] == 2]


class TestIcebergPacked(TestIceberg):
    operation = Operation.OPTIMIZE


def delta_rows(table: OpenTable) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for unit in table.snapshot().units:
        for batch in table.gate.rows(unit, table.gate.survivors(unit, View.RAW)):
            for row in batch.to_pylist():
                day = row["day"]
                rows.append((None if day is None else str(day), row["id"], row["price"], row["note"]))
    return sorted(rows, key=repr)


def rows_by_day(table: OpenTable) -> dict[str, Counter[tuple[int, str | None]]]:
    rows: dict[str, Counter[tuple[int, str | None]]] = {}
    for unit in table.snapshot().units:
        for batch in table.gate.rows(unit, table.gate.survivors(unit, View.RAW)):
            for row in batch.to_pylist():
                rows.setdefault(row["day"], Counter())[row["id"], row["note"]] += 1
    return rows


def test_a_format_that_does_not_exist_is_no_address() -> None:
    with pytest.raises(AddressError, match="expected a table of format delta, iceberg, memory, paimon, found hudi"):
        open_table(Address("hudi", "/nowhere", "nowhere"))
