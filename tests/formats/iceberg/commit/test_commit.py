"""What a staged snapshot says, as Java reads it: entries, numbers, row ids, totals; and which deletes it lets go."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_java import IcebergJava
from tests.formats.iceberg.laid_anew import a_run, nothing_but_manifests
from tests.formats.iceberg.lake import Lake, kept_table
from tests.formats.iceberg.runs import DAYS, Kept, care_for, opened, row, token
from tests.formats.iceberg.sweeping import rewritten
from tests.support.table_storage import storage_of

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.commit.commit_changes import Edits, change_of, retired_positional
from nightkeep.formats.iceberg.commit.summary import totals
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, ManifestContent, NewFile
from nightkeep.formats.iceberg.metadata.manifest_merge import worth_merging
from nightkeep.formats.iceberg.metadata.pending_changes import DeleteTarget, IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import Intent, Operation, Outcome, UnitKey
from nightkeep.model.run_names import RETRY_HORIZON_MS, commit_user

pytestmark = pytest.mark.in_turn("kept")

FIRST = UnitKey(f"day={DAYS[0]}")


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory.mktemp("commit"), version=request.param)


@pytest.fixture
def lake(kept: Kept, iceberg_java: IcebergJava) -> Lake:
    return Lake(iceberg_java, kept.put_back())


# What it says


def test_a_conversion_keeps_every_data_manifest_and_reports_its_deletes(lake: Lake) -> None:
    before, shown = lake.ours.snapshot(), lake.shown()
    assert care_for(lake.table).outcome is Outcome.VERIFIED
    after = lake.ours.snapshot()
    data = [manifest for manifest in before.manifests if manifest.content is ManifestContent.DATA]
    assert [manifest for manifest in after.manifests if manifest.content is ManifestContent.DATA] == data
    assert lake.shown() == shown
    gone = lake.entries(status=2)
    assert gone and {entry["snapshot_id"] for entry in gone} == {after.version}
    numbers = {
        each.identity: each.sequence_number for unit in before.units for each in (*unit.equality, *unit.positional)
    }
    assert {(e["file_path"], e.get("content_offset")): e["sequence_number"] for e in gone} == {
        identity: number for identity, number in numbers.items() if identity not in _deletes(after)
    }
    added = lake.entries(status=1, snapshot_id=after.version)
    assert {entry["sequence_number"] for entry in added} == {after.sequence_number}
    assert {entry["content"] for entry in added} == {1}
    assert not [entry for entry in lake.entries(content=2) if entry["status"] != 2]


def _deletes(snapshot: IcebergSnapshot) -> set[tuple[str, int | None]]:
    return {each.identity for unit in snapshot.units for each in (*unit.equality, *unit.positional)}


def test_a_conversion_reports_it_in_its_summary(lake: Lake) -> None:
    before = lake.ours.snapshot()
    document = care_for(lake.table, run_id="tonight")
    after = lake.ours.snapshot()
    summary, vectors = dict(after.summary), lake.version == 3
    assert after.operation == "delete"
    assert not after.changes_rows
    assert (summary["nightkeep.operation"], summary["engine-name"]) == ("persist-deletes", "nightkeep")
    assert summary["nightkeep.run"] == commit_user(token(document.run_id))
    equality = {each.identity: each for unit in before.units for each in unit.equality}.values()
    assert int(summary["removed-equality-delete-files"]) == len(equality)
    assert int(summary["removed-equality-deletes"]) == sum(each.rows for each in equality)
    assert ("added-dvs" in summary, "added-position-delete-files" in summary) == (vectors, not vectors)
    assert summary["changed-partition-count"] == "2"
    live = [file for unit in after.units for file in (*unit.files, *unit.positional, *unit.equality)]
    assert {key: summary[key] for key in totals(live)} == totals(live)
    assert all(isinstance(value, str) for value in summary.values())


def test_rows_written_anew_are_the_same_rows_and_old_deletes_go_with_the_files(lake: Lake) -> None:
    shown, run = lake.shown(), a_run()
    snapshot, rewrites = lake.laid_anew(run, rows_per_file=100)
    candidate = lake.commit(rewrites, run)
    after = lake.ours.snapshot()
    assert lake.shown() == shown
    assert (after.version, after.operation) == (candidate.version, "replace")
    added = lake.entries(status=1)
    assert {entry["sequence_number"] for entry in added} == {snapshot.sequence_number}
    assert {entry["file_sequence_number"] for entry in added} == {after.sequence_number}
    assert not [task for task in lake.java.tasks(lake.table) if task["deletes"]]
    assert after.summary["total-delete-files"] == after.summary["total-equality-deletes"] == "0"
    assert int(after.summary["added-records"]) == int(after.summary["total-records"]) == sum(shown.values())


def test_equality_deletes_that_came_after_the_plan_hold_for_what_was_written_anew(lake: Lake) -> None:
    run = a_run()
    _, rewrites = lake.laid_anew(run)
    lake.java.cdc(lake.table, [("-D", row(DAYS[0], 1)), ("+U", row(DAYS[1], 2, "late"))], keys=["id", "day"])
    lake.java.append(lake.table, [row(DAYS[2], 77)])
    shown = lake.shown()
    lake.commit(rewrites, run)
    assert lake.shown() == shown
    assert len([entry for entry in lake.entries(content=2) if entry["status"] != 2]) == 2


def test_only_what_is_done_with_lets_equality_deletes_go(lake: Lake) -> None:
    """Each day has its own deletes; one day alone is converted."""
    before = {key: set(unit.equality) for key, unit in lake.ours.snapshot().by_key.items()}
    care_for(lake.table, where=f"day = '{DAYS[0]}'")
    after = {key: set(unit.equality) for key, unit in lake.ours.snapshot().by_key.items()}
    assert before[FIRST] and after == {**before, FIRST: set()}


def test_row_ids_are_above_all_others_and_rows_keep_theirs(lake: Lake) -> None:
    run, before = a_run(), lake.table.document()
    _, rewrites = lake.laid_anew(run)
    lake.commit(rewrites, run)
    after = lake.table.document()
    snapshot = after["snapshots"][-1]
    if lake.version == 2:
        assert not {"first-row-id", "added-rows"} & snapshot.keys()
        return
    assert snapshot["first-row-id"] == before["next-row-id"]
    assert after["next-row-id"] == snapshot["first-row-id"] + snapshot["added-rows"]
    assert min(entry["first_row_id"] for entry in lake.entries(status=1)) >= before["next-row-id"]


def test_what_is_staged_becomes_the_snapshot_and_is_gone(lake: Lake) -> None:
    run = a_run()
    _, rewrites = lake.laid_anew(run, DAYS[:1])
    table = lake.ours
    candidate = table.commits.stage(table.snapshot(), rewrites, run)
    staged = json.loads(storage_of(table).read(candidate.metadata))
    assert table.commits.commit(candidate)
    assert lake.table.document()["snapshots"][-1] == staged
    assert not storage_of(table).exists(candidate.metadata)
    assert lake.java.metadata(lake.table)["current-snapshot-id"] == candidate.version == staged["snapshot-id"]


def test_a_data_file_that_is_not_live_cannot_be_removed(lake: Lake) -> None:
    run = a_run()
    _, rewrites = lake.laid_anew(run, DAYS[:1])
    lake.commit(rewrites, run)
    with pytest.raises(CorruptMetadata, match="as it was rewritten, found no such live file"):
        lake.ours.commits.stage(lake.ours.snapshot(), rewrites, a_run())


@pytest.mark.parametrize("lag_ms", [-10_000_000_000, 0, 1])
def test_time_never_runs_backwards(lake: Lake, lag_ms: int) -> None:
    before = lake.table.document()
    run = a_run(now_ms=before["last-updated-ms"] + lag_ms)
    _, rewrites = lake.laid_anew(run, DAYS[2:])
    lake.commit(rewrites, run)
    assert lake.ours.snapshot().timestamp_ms == max(run.now_ms, before["last-updated-ms"])


def test_a_run_finds_its_commit_below_others_but_not_for_ever(lake: Lake) -> None:
    run = a_run()
    before, rewrites = lake.laid_anew(run, DAYS[1:])
    candidate = lake.commit(rewrites, run)
    lake.java.append(lake.table, [row(DAYS[0], 77)])
    (done,) = lake.ours.commits.committed(a_run())
    assert (done.version, done.parent_version) == (candidate.version, before.version)
    assert set(done.units) == set(candidate.units)
    late_ms = lake.ours.snapshot().timestamp_ms + RETRY_HORIZON_MS + 1
    assert lake.ours.commits.committed(a_run(now_ms=late_ms)) != (), "a clock that is ahead tells nothing"
    rewritten(lake.table, **{"last-updated-ms": late_ms})
    assert lake.ours.commits.committed(a_run(now_ms=late_ms)) == ()


def test_the_way_back_is_a_statement_of_the_engine(lake: Lake) -> None:
    assert (
        lake.ours.commits.rollback(17)
        == f"CALL `{lake.table.warehouse.name}`.system.rollback_to_snapshot('`shop`.`events`', 17)"
    )


# Manifests


def merging(lake: Lake, **properties: str) -> IcebergSnapshot:
    names = {name.replace("_", "-"): text for name, text in properties.items()}
    prefixed = {f"commit.manifest.{name}": text for name, text in names.items()}
    lake.java.alter(lake.table, {"change": "set_properties", "properties": prefixed})
    return lake.ours.snapshot()


def test_small_manifests_become_few_and_report_the_same(lake: Lake) -> None:
    before, shown = merging(lake, min_count_to_merge="2"), lake.shown()
    reason = worth_merging(before)
    assert reason is not None and reason.startswith(f"{len(before.manifests)} small manifests, ")
    run = a_run()
    lake.commit([nothing_but_manifests(before, before.units[0])], run)
    after = lake.ours.snapshot()
    assert lake.shown() == shown
    assert after.units == before.units
    assert sorted(manifest.content for manifest in after.manifests) == [ManifestContent.DATA, ManifestContent.DELETES]
    assert {entry["status"] for entry in lake.entries()} == {0}
    assert worth_merging(after) is None
    assert after.summary["manifests-replaced"] == str(len(before.manifests))
    least = min(file.sequence_number for unit in before.units for file in unit.files)
    assert min(manifest.min_sequence_number for manifest in after.manifests) == least


def test_manifests_keep_to_their_size_and_have_partitions_together(lake: Lake) -> None:
    before = merging(lake, min_count_to_merge="2")
    size = max(manifest.bytes for manifest in before.manifests)
    before = merging(lake, min_count_to_merge="2", target_size_bytes=str(2 * size + 2))
    run = a_run()
    lake.commit([nothing_but_manifests(before, before.units[0])], run)
    after = lake.ours.snapshot()
    assert after.units == before.units
    data = [manifest for manifest in after.manifests if manifest.content is ManifestContent.DATA]
    assert 1 < len(data) < len([each for each in before.manifests if each.content is ManifestContent.DATA])
    spans = [
        [manifest.partitions[0][f"{end}_bound"] for end in ("lower", "upper")]
        for manifest in data
        if manifest.partitions
    ]
    assert len(spans) == len(data)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))  # type: ignore[operator]


def test_few_manifests_are_left_alone(lake: Lake) -> None:
    assert worth_merging(lake.ours.snapshot()) is None


# Which deletes go: a slow twin


PATHS = [f"f{number}" for number in range(4)]
numbers = st.integers(1, 6)


@dataclass(frozen=True)
class Case:
    """One unit of an unpartitioned table, and what a commit does to its files."""

    files: dict[str, int]
    removed: frozenset[str]
    settled: frozenset[str]
    planned: int
    added: tuple[int | None, ...]
    equality: dict[str, int]


cases = st.builds(
    Case,
    files=st.dictionaries(st.sampled_from(PATHS), numbers),
    removed=st.frozensets(st.sampled_from(PATHS)),
    settled=st.frozensets(st.sampled_from(PATHS)),
    planned=numbers,
    added=st.lists(st.none() | numbers, max_size=2).map(tuple),
    equality=st.dictionaries(st.sampled_from(["e0", "e1", "e2"]), numbers),
)


def needed(case: Case, number: int) -> bool:
    """Whether any row older than the delete could still be hidden by it alone."""
    for path, sequence in case.files.items():
        done = path in case.removed or (path in case.settled and number <= case.planned)
        if sequence < number and not done:
            return True
    return any(sequence is not None and sequence < number for sequence in case.added)


@given(case=cases)
def test_equality_deletes_go_once_nothing_needs_them(hand_made: IcebergSnapshot, case: Case) -> None:
    files = {path: content_file(path, sequence) for path, sequence in case.files.items()}
    equality = {
        path: content_file(path, number, FileContent.EQUALITY_DELETES) for path, number in case.equality.items()
    }
    unit = replace(hand_made.units[0], files=tuple(files.values()), positional=(), equality=tuple(equality.values()))
    removed = tuple(file for path, file in files.items() if path in case.removed)
    added = tuple(new_file(sequence) for sequence in case.added)
    intent = Intent(Operation.OPTIMIZE)
    edit = IcebergEdit(case.planned, intent, removed, added, settled=case.settled - case.removed)
    change = change_of(replace(hand_made, units=(unit,)), Edits((edit,), (unit.key,)))
    gone = {file.path for file in change.removed if file.content is FileContent.EQUALITY_DELETES}
    assert gone == {path for path, number in case.equality.items() if not needed(case, number)}


@pytest.fixture(scope="module")
def hand_made(kept: Kept) -> IcebergSnapshot:
    return opened(kept.put_back()).snapshot()


def content_file(
    path: str, number: int, content: FileContent = FileContent.DATA, *, referenced: str | None = None, **raw: Any
) -> ContentFile:
    return ContentFile(
        content, path, path, "parquet", 0, (DAYS[0],), 10, 100, number, number, 1, referenced=referenced, raw=raw
    )


def new_file(sequence: int | None) -> NewFile:
    return NewFile(FileContent.DATA, 0, {"file_path": "new", "partition": (DAYS[0],)}, sequence)


def named(low: str, high: str) -> dict[str, dict[int, bytes]]:
    field = 2_147_483_546
    return {"lower_bounds": {field: low.encode()}, "upper_bounds": {field: high.encode()}}


POSITIONAL = FileContent.POSITION_DELETES
OTHER = IcebergEdit(9, Intent(Operation.OPTIMIZE))
FOLDED = IcebergEdit(9, Intent(Operation.PERSIST_DELETES), targets=(DeleteTarget("f1", frozenset({("d", None)})),))
RETIRED: dict[str, tuple[ContentFile, IcebergEdit, bool]] = {
    "of a file that stays": (content_file("d", 3, POSITIONAL, referenced="f1"), OTHER, False),
    "of a file that is not live": (content_file("d", 3, POSITIONAL, referenced="f7"), OTHER, True),
    "older than its file": (content_file("d", 1, POSITIONAL, referenced="f2"), OTHER, True),
    "replaced": (content_file("d", 3, POSITIONAL, referenced="f1"), FOLDED, True),
    "of several files, replaced for one": (content_file("d", 3, POSITIONAL, **named("f1", "f2")), FOLDED, False),
    "of several files, its bounds rule out the rest": (
        content_file("d", 3, POSITIONAL, **named("f0", "f1")),
        FOLDED,
        True,
    ),
    "of several files, and nobody knows which": (content_file("d", 3, POSITIONAL), OTHER, False),
    "older than every file": (content_file("d", 0, POSITIONAL), OTHER, True),
}


@pytest.mark.parametrize("case", RETIRED)
def test_position_deletes_go_once_they_hold_for_nothing(hand_made: IcebergSnapshot, case: str) -> None:
    delete, edit, goes = RETIRED[case]
    files = (content_file("f1", 1), content_file("f2", 2))
    unit: IcebergUnit = replace(hand_made.units[0], files=files, positional=(delete,))
    assert list(retired_positional(unit, Edits((edit,), (unit.key,)))) == ([delete] if goes else [])
