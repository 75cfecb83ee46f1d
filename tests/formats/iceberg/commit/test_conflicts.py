"""What Java commits between our plan and our commit: what costs us a partition, and what Java may commit after ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg.breaking import waiting
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.lake import Lake, kept_table
from tests.formats.iceberg.runs import DAYS, Kept, care_for, contents, row, token
from tests.support.unlucky_tables import overtaken

from nightkeep.formats.iceberg.commit.commit_changes import change_of
from nightkeep.formats.iceberg.commit.conflicts import edits_of
from nightkeep.formats.iceberg.metadata.content_files import FileContent
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.model import (
    Committed,
    Conflicted,
    Operation,
    Outcome,
    Request,
    Rewrite,
    Run,
    UnitKey,
    Verified,
    VerifyLevel,
)
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("kept")

NOBODY: tuple[str, ...] = ()
CONVERTED = DAYS[:2]
"""Partitions that persist-deletes has work in."""


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory.mktemp("conflicts"), version=request.param)


@pytest.fixture
def lake(kept: Kept, iceberg_java: IcebergJava) -> Lake:
    return Lake(iceberg_java, kept.put_back())


def data_paths(lake: Lake, day: str) -> list[str]:
    unit = lake.ours.snapshot().by_key[UnitKey(f"day={day}")]
    return [file.path for file in sorted(unit.files, key=lambda file: file.sequence_number)]


def mark(lake: Lake, day: str) -> None:
    """Positions of the day's oldest file, as a foreign DELETE leaves them."""
    positions = [(data_paths(lake, day)[0], 3)]
    write = lake.java.vectors if lake.version == 3 else lake.java.position_deletes
    lake.java.commit(lake.table, write(lake.table, positions))


def compact(lake: Lake, day: str) -> None:
    begun = lake.java.begin_rewrite(
        lake.table, where={"type": "eq", "term": "day", "value": day}, options={"rewrite-all": "true"}
    )
    lake.java.commit_rewrite(lake.table, begun)


def alter(*changes: dict[str, Any]) -> Callable[[Lake], None]:
    def altered(lake: Lake) -> None:
        lake.java.alter(lake.table, *changes)

    return altered


MEANWHILE: dict[str, tuple[Callable[[Lake], object], Sequence[str]]] = {
    "an append": (lambda lake: lake.java.append(lake.table, [row(DAYS[0], 999)]), NOBODY),
    "an append of a new partition": (lambda lake: lake.java.append(lake.table, [row("2026-12-24", 1)]), NOBODY),
    "an upsert": (lambda lake: lake.java.cdc(lake.table, [("+U", row(DAYS[0], 1, "new"))], keys=["id", "day"]), NOBODY),
    "a delete by keys": (lambda lake: lake.java.cdc(lake.table, [("-D", row(DAYS[1], 7))], keys=["id", "day"]), NOBODY),
    "manifests written anew": (lambda lake: lake.java.rewrite_manifests(lake.table), NOBODY),
    "a property": (alter({"change": "set_properties", "properties": {"a": "b"}}), NOBODY),
    "a partition field": (alter({"change": "add_partition_field", "column": "id", "transform": "bucket[4]"}), NOBODY),
    "a delete by positions": (lambda lake: mark(lake, DAYS[1]), (DAYS[1],)),
    "a compaction": (lambda lake: compact(lake, DAYS[0]), (DAYS[0],)),
    "a new column": (alter({"change": "add_column", "name": "colour", "type": "string"}), DAYS),
    "a renamed column": (alter({"change": "rename_column", "name": "note", "to": "remark"}), DAYS),
}


def converted(lake: Lake, run: Run) -> Verified:
    """A conversion that is planned, written and proven."""
    table, request = lake.ours, Request(Operation.PERSIST_DELETES, run.now_ms)
    base = table.snapshot()
    planned = plan(table, base, request)
    rewrites = execute(table, planned, run, mapper=inline)
    candidate = table.commits.stage(base, rewrites, run)
    checked = verify(table, planned, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    return checked


@pytest.mark.in_turn("late")
@pytest.mark.parametrize("late", [False, True], ids=["before we look", "after we looked"])
@pytest.mark.parametrize("name", MEANWHILE)
def test_what_costs_a_conversion_its_partitions(lake: Lake, name: str, late: bool) -> None:
    run = a_run()
    checked = converted(lake, run)
    act, lost = MEANWHILE[name]
    shown = []

    def meanwhile() -> None:
        act(lake)
        shown.append(lake.java.read(lake.table))

    if not late:
        meanwhile()
    table = overtaken(lake.ours, meanwhile) if late else lake.ours
    done = publish(table, checked, run)  # type: ignore[arg-type]
    # Files fit any schema, as their fields have ids: nothing is lost where a new one came without a snapshot.
    seen = NOBODY if late and lost == DAYS else lost
    expected = {UnitKey(f"day={day}") for day in seen if day in CONVERTED}
    if len(expected) == len(CONVERTED):
        assert isinstance(done, Conflicted)
        assert not [name for name in contents(lake.table) if run.token in name]
    else:
        assert isinstance(done, Committed)
        assert {key for key, reason in done.conflicted if reason} == expected
    assert lake.java.read(lake.table) == shown[0]
    assert care_for(lake.table, run_id="the next").outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert lake.java.read(lake.table) == shown[0]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", MEANWHILE)
def test_what_costs_a_rewrite_of_rows_its_partitions(lake: Lake, name: str) -> None:
    """Every data file of the table is replaced; what others deleted by keys meanwhile stays deleted."""
    run = a_run()
    planned, rewrites = lake.laid_anew(run)
    act, lost = MEANWHILE[name]
    act(lake)
    shown, table = lake.java.read(lake.table), lake.ours
    read_as = table.snapshot(planned.version, read_as=planned)
    found = dict(table.commits.conflicts(read_as, table.snapshot(), rewrites))
    assert {str(key) for key in found} == {f"day={day}" for day in lost}
    assert all(reason for reason in found.values())
    left = [rewrite for rewrite in rewrites if rewrite.key not in found]
    if left:
        lake.commit(left, run)
    assert lake.java.read(lake.table) == shown


def test_files_for_the_format_before_an_upgrade_are_not_committed_after_it(lake: Lake) -> None:
    if lake.version == 3:
        pytest.skip("there is no later version")
    run = a_run()
    checked = converted(lake, run)
    lake.java.alter(lake.table, {"change": "set_properties", "properties": {"format-version": "3"}})
    shown = lake.java.read(lake.table)
    done = publish(lake.ours, checked, run)
    assert isinstance(done, Conflicted)
    assert {reason for _, reason in done.units} == {
        "the table's format version changed: a file of position deletes was written for a table of format version 2"
    }
    assert care_for(lake.table).outcome is Outcome.VERIFIED
    assert lake.java.read(lake.table) == shown


def test_rows_written_before_an_upgrade_are_not_committed_after_it(lake: Lake) -> None:
    run = a_run()
    planned, rewrites = lake.laid_anew(run)
    before = lake.version
    lake.java.alter(lake.table, {"change": "set_properties", "properties": {"format-version": "3"}})
    table = lake.ours
    read_as = table.snapshot(planned.version, read_as=planned)
    assert bool(table.commits.conflicts(read_as, table.snapshot(), rewrites)) is (before == 2)


# Java's commits after ours


def test_a_compaction_started_before_a_conversion_is_rejected_after_it(lake: Lake) -> None:
    """As a `replace`, the conversion would let it pass, and deleted rows came back."""
    shown = lake.java.read(lake.table)
    begun = lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"})
    assert care_for(lake.table).outcome is Outcome.VERIFIED
    with pytest.raises(EngineError):
        lake.java.commit_rewrite(lake.table, begun)
    assert lake.java.read(lake.table) == shown


def test_a_compaction_started_before_deletes_by_keys_and_a_conversion_is_rejected(lake: Lake) -> None:
    begun = lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"})
    lake.java.cdc(lake.table, [("-D", row(DAYS[0], 1)), ("-D", row(DAYS[2], 2))], keys=["id", "day"])
    shown = lake.java.read(lake.table)
    assert care_for(lake.table).outcome is Outcome.VERIFIED
    with pytest.raises(EngineError):
        lake.java.commit_rewrite(lake.table, begun)
    assert lake.java.read(lake.table) == shown


def test_an_upsert_started_before_a_conversion_commits_after_it(lake: Lake) -> None:
    """Flink's checkpoints take no notice of ours, and need not."""
    upsert = lake.java.checkpoint(
        lake.table, [("+U", row(DAYS[0], 1, "late")), ("-D", row(DAYS[1], 2))], keys=["id", "day"]
    )
    before = {(r[0], r[1]): r for r in map(tuple, lake.java.read(lake.table).rows)}
    assert care_for(lake.table).outcome is Outcome.VERIFIED
    lake.java.commit(lake.table, upsert)
    after = {(r[0], r[1]): r for r in map(tuple, lake.java.read(lake.table).rows)}
    del before[2, DAYS[1]]
    assert after.keys() == before.keys()
    assert [key for key, found in after.items() if found != before[key]] == [(1, DAYS[0])]


def test_positions_of_a_file_that_we_rewrote_are_rejected(lake: Lake) -> None:
    """A DELETE that had read the file before we replaced it."""
    run, base = a_run(), lake.ours.snapshot().version
    positions = [(data_paths(lake, DAYS[2])[0], 3)]
    if lake.version == 3:
        deletes = lake.java.vectors(lake.table, positions)
    else:
        deletes = lake.java.position_deletes(lake.table, positions, granularity="file")
    _, rewrites = lake.laid_anew(run, DAYS[2:])
    lake.commit(rewrites, run)
    shown = lake.java.read(lake.table)
    with pytest.raises(EngineError):
        lake.java.commit(lake.table, deletes, base=base)
    assert lake.java.read(lake.table) == shown


# Several of us


@pytest.mark.few(1)
@pytest.mark.parametrize("other", ["ours", "another run"])
@pytest.mark.parametrize("before", ["execute", "publish"])
def test_of_two_of_us_one_commits(lake: Lake, before: str, other: str) -> None:
    """Two runs, and two attempts of one run whose scheduler took the first for dead."""
    shown, known = lake.java.read(lake.table), contents(lake.table).keys()
    snapshots = len(lake.table.document()["snapshots"])
    with waiting(lake.table, before=before) as first, waiting(lake.table, before=before, run_id=other) as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    # An attempt that lost to another one of its run tells of what the run published.
    lost = Outcome.VERIFIED if other == "ours" else Outcome.CONFLICTED
    assert sorted(document["outcome"] for document in documents) == [lost, Outcome.VERIFIED]
    assert len(lake.table.document()["snapshots"]) == snapshots + 1
    assert lake.java.read(lake.table) == shown
    live = {manifest.name for manifest in lake.ours.snapshot().manifests}
    live |= {file.name for unit in lake.ours.snapshot().units for file in (*unit.files, *unit.positional)}
    fresh = {name for name in contents(lake.table).keys() - known if not name.endswith(".metadata.json")}
    assert {name for name in fresh - live if "/snap-" not in name} == set()


def test_what_java_commits_while_we_wait_is_kept(lake: Lake) -> None:
    with waiting(lake.table) as ours:
        lake.java.cdc(lake.table, [("-D", row(DAYS[0], 1)), ("+U", row(DAYS[1], 2, "late"))], keys=["id", "day"])
        shown = lake.java.read(lake.table)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert lake.java.read(lake.table) == shown


def test_a_retry_finds_its_commit_below_others(lake: Lake) -> None:
    first = care_for(lake.table, run_id="ours")
    lake.java.append(lake.table, [row(DAYS[0], 999)])
    shown = lake.java.read(lake.table)
    again = care_for(lake.table, run_id="ours")
    assert (again.outcome, again.committed_version) == (Outcome.VERIFIED, first.committed_version)
    assert lake.java.read(lake.table) == shown
    assert (
        len([s for s in lake.table.document()["snapshots"] if token("ours") in s["summary"].get("nightkeep.run", "")])
        == 1
    )


def test_deletes_stay_for_rows_that_others_moved_after_we_looked_at_them(lake: Lake) -> None:
    """A file that no key hides a row of is compacted with what we never saw settled: its deletes are still needed."""
    run = a_run()
    checked = converted(lake, run)
    table, planned = lake.ours, lake.ours.snapshot(checked.plan.version)
    head = lake.ours.snapshot()
    unit = head.by_key[UnitKey(f"day={DAYS[0]}")]
    rewrites = [rewrite for rewrite in checked.rewrites if rewrite.key == unit.key]
    targets = {target.path for rewrite in rewrites for target in edit_of(rewrite).targets}
    settled = {path for rewrite in rewrites for path in edit_of(rewrite).settled} - targets
    assert settled
    moved = replace(next(file for file in unit.files if file.path in settled), path="moved", name="moved")
    left = tuple(file for file in unit.files if file.path not in settled)
    others = replace(unit, files=(*left, moved))
    after = replace(head, units=tuple(others if each.key == unit.key else each for each in head.units))
    assert not table.commits.conflicts(planned, after, rewrites)
    removed = change_of(after, edits_of(rewrites)).removed
    assert not [file for file in removed if file.content is FileContent.EQUALITY_DELETES]


def edit_of(rewrite: Rewrite) -> IcebergEdit:
    assert isinstance(rewrite.edit, IcebergEdit)
    return rewrite.edit
