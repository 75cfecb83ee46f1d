"""What the audit says of what Java wrote: nothing; and of staged snapshots that break a promise, one after another."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyroaring import BitMap64
from tests.drivers.iceberg_java import IcebergJava
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.lake import Lake, kept_table
from tests.formats.iceberg.runs import DAYS, Kept
from tests.support.proofs import NO_ROWS, in_batches, unit_faults
from tests.support.table_storage import storage_of

from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.deletes.position_deletes import write_positions
from nightkeep.formats.iceberg.gate import manifest_audit
from nightkeep.formats.iceberg.gate.file_audit import file_faults
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, Status
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import Candidate, Operation, Request, UnitKey
from nightkeep.stages.plan import plan

pytestmark = pytest.mark.in_turn("kept")

FIRST = UnitKey(f"day={DAYS[0]}")


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory.mktemp("audit"), version=request.param)


@pytest.fixture
def lake(kept: Kept, iceberg_java: IcebergJava) -> Lake:
    return Lake(iceberg_java, kept.put_back())


@dataclass(frozen=True)
class Staged:
    lake: Lake
    parent: IcebergSnapshot
    snapshot: IcebergSnapshot
    candidate: Candidate

    def faults(self, **changes: Any) -> str:
        found = self.lake.ours.gate.faults(self.parent, replace(self.snapshot, **changes), self.candidate.units)
        return "; ".join(found)

    def with_unit(self, change: Callable[[IcebergUnit], IcebergUnit], key: UnitKey = FIRST) -> str:
        units = tuple(change(unit) if unit.key == key else unit for unit in self.snapshot.units)
        return self.faults(units=units)


def staged(lake: Lake, *, conversion: bool) -> Staged:
    table, run = lake.ours, a_run()
    parent = table.snapshot()
    if conversion:
        found = plan(table, parent, Request(Operation.PERSIST_DELETES, run.now_ms))
        rewrites = [table.rewrite(task, run) for unit in found.units for task in unit.tasks]
    else:
        _, rewrites = lake.laid_anew(run, DAYS[:1])
    candidate = table.commits.stage(parent, rewrites, run)
    return Staged(lake, parent, table.staged(candidate), candidate)


@pytest.fixture
def converted(lake: Lake) -> Staged:
    return staged(lake, conversion=True)


@pytest.fixture
def rewritten(lake: Lake) -> Staged:
    return staged(lake, conversion=False)


@pytest.mark.parametrize("rows", [7, 1 << 16])
def test_data_files_of_java_are_what_their_manifests_state(
    lake: Lake, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for row ids, which files of new rows inherit."""
    in_batches(monkeypatch, IcebergFileReader, rows)
    judged = 0
    for unit in lake.ours.snapshot().units:
        for file in unit.files:
            found = [
                fault
                for fault in file_faults(storage_of(lake.ours), unit, file, **NO_ROWS)
                if "no ids of its rows" not in fault
            ]
            assert not found
            judged += 1
    assert judged > 5


def test_snapshots_of_ours_are_without_fault(converted: Staged, lake: Lake) -> None:
    assert converted.faults() == ""
    assert staged(lake, conversion=False).faults() == ""


# Numbers of the snapshot


SNAPSHOTS: dict[str, tuple[Callable[[Staged], Mapping[str, Any]], str]] = {
    "another parent": (lambda s: {"parent_version": 17}, "parent 17, expected"),
    "an old number": (lambda s: {"sequence_number": s.parent.sequence_number}, "expected above its parent's"),
    "an early time": (lambda s: {"timestamp_ms": s.parent.timestamp_ms - 1}, "before its parent"),
    "an operation that changes rows": (lambda s: {"operation": "overwrite"}, "operation overwrite"),
    "a total that is off": (
        lambda s: {"summary": {**s.snapshot.summary, "total-data-files": "1"}},
        "total-data-files 1",
    ),
    "no total": (lambda s: {"summary": {}}, "total-records missing"),
    "a manifest twice": (lambda s: {"manifests": (*s.snapshot.manifests, s.snapshot.manifests[-1])}, "listed 2 times"),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_numbers_of_a_snapshot(converted: Staged, name: str) -> None:
    change, fault = SNAPSHOTS[name]
    assert fault in converted.faults(**change(converted))


# Files and deletes


def test_equality_deletes_do_not_go_from_a_partition_that_nobody_proved(converted: Staged) -> None:
    parts = tuple(key for key in converted.candidate.units if key != FIRST)
    found = converted.lake.ours.gate.faults(converted.parent, converted.snapshot, parts)
    assert any("equality deletes are gone" in fault and "still needs them" in fault for fault in found)
    assert any(fault == f"{FIRST}: changed, though no unit of it was worked on" for fault in found)


def test_equality_deletes_do_not_go_while_what_was_written_is_older_than_they_are(rewritten: Staged) -> None:
    def older(unit: IcebergUnit) -> IcebergUnit:
        return replace(unit, files=tuple(replace(file, sequence_number=1) for file in unit.files))

    assert "equality deletes are gone, the new" in rewritten.with_unit(older)


def test_new_equality_deletes_are_a_fault(rewritten: Staged) -> None:
    other = next(unit for unit in rewritten.parent.units if unit.equality and unit.key != FIRST).equality[0]
    found = rewritten.with_unit(lambda unit: replace(unit, equality=(replace(other, path="new"),)))
    assert "new: new equality deletes, expected none" in found


def test_a_file_that_stays_stays_what_it_was(converted: Staged) -> None:
    def other(**change: Any) -> Callable[[IcebergUnit], IcebergUnit]:
        return lambda unit: replace(unit, files=(replace(unit.files[0], **change), *unit.files[1:]))

    assert "sequence_number changed" in converted.with_unit(other(sequence_number=77))
    assert "rows changed" in converted.with_unit(other(rows=1))
    raw = {**converted.snapshot.by_key[FIRST].files[0].raw, "column_sizes": {1: 1}}
    assert "column_sizes changed" in converted.with_unit(other(raw=raw))
    twice = converted.with_unit(lambda unit: replace(unit, files=(*unit.files, unit.files[0])))
    assert "live 2 times" in twice


def test_numbers_of_new_files(rewritten: Staged, lake: Lake) -> None:
    newer = rewritten.parent.sequence_number + 1
    found = rewritten.with_unit(
        lambda unit: replace(unit, files=tuple(replace(file, sequence_number=newer) for file in unit.files))
    )
    assert f"sequence number {newer}, newer than deletes that its rows may miss" in found
    foreign = rewritten.with_unit(
        lambda unit: replace(unit, files=tuple(replace(file, snapshot_id=5) for file in unit.files))
    )
    assert "by 5, expected" in foreign


def test_new_deletes_hold_from_the_commit_on_and_for_one_live_file(converted: Staged) -> None:
    def changed(**change: Any) -> Callable[[IcebergUnit], IcebergUnit]:
        return lambda unit: replace(unit, positional=(replace(unit.positional[0], **change), *unit.positional[1:]))

    assert "expected the commit's" in converted.with_unit(changed(sequence_number=2))
    assert "older than its data file" in converted.with_unit(changed(sequence_number=0))
    assert "of elsewhere, which is no live file" in converted.with_unit(changed(referenced="elsewhere"))


def test_two_vectors_of_one_file(converted: Staged) -> None:
    if converted.lake.version == 2:
        pytest.skip("there are no vectors")
    found = converted.with_unit(
        lambda unit: replace(unit, positional=(*unit.positional, replace(unit.positional[0], content_offset=9)))
    )
    assert "2 deletion vectors, expected one" in found


def test_position_delete_files_are_not_added_to_tables_of_vectors(converted: Staged) -> None:
    if converted.lake.version == 2:
        pytest.skip("they are what is added")
    found = converted.with_unit(
        lambda unit: replace(unit, positional=(replace(unit.positional[0], format="parquet"), *unit.positional[1:]))
    )
    assert "a position delete file, expected a vector" in found


# Row ids


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda first: None, "no first row id"),
        (lambda first: 0, "row ids 0 to"),
        (lambda first: first + 1_000_000, "expected from"),
    ],
)
def test_new_row_ids_are_nobody_elses(rewritten: Staged, change: Callable[[int], int | None], fault: str) -> None:
    if rewritten.lake.version == 2:
        pytest.skip("there are no row ids")

    def moved(unit: IcebergUnit) -> IcebergUnit:
        file = unit.files[0]
        return replace(unit, files=(replace(file, first_row_id=change(file.first_row_id or 0)), *unit.files[1:]))

    assert fault in rewritten.with_unit(moved)


def test_row_ids_do_not_overlap(lake: Lake) -> None:
    if lake.version == 2:
        pytest.skip("there are no row ids")
    run = a_run()
    parent, rewrites = lake.laid_anew(run, DAYS[:1], rows_per_file=50)
    candidate = lake.ours.commits.stage(parent, rewrites, run)
    made = Staged(lake, parent, lake.ours.staged(candidate), candidate)
    same = min(file.first_row_id or 0 for file in made.snapshot.by_key[FIRST].files)
    found = made.with_unit(
        lambda unit: replace(unit, files=tuple(replace(file, first_row_id=same) for file in unit.files))
    )
    assert "row ids overlap" in found
    later = made.faults(raw={**made.snapshot.raw, "first-row-id": 0})
    assert "first-row-id 0, expected the table's next" in later
    assert "expected numbers" in made.faults(raw={**made.snapshot.raw, "added-rows": None})


# Manifests


LINES: dict[str, tuple[Mapping[str, Any], str]] = {
    "a snapshot's id": ({"snapshot_id": 5}, "added by 5"),
    "a sequence number": ({"sequence_number": 77}, "with 77"),
    "least number": ({"min_sequence_number": 77}, "least sequence number 77"),
    "rows": ({"deleted_rows": 77}, "with 77 rows"),
    "no bounds": ({"partitions": ()}, "0 partition summaries"),
    "wrong bounds": (
        {"partitions": ({"contains_null": False, "lower_bound": b"2030", "upper_bound": b"2031"},)},
        "outside of its bounds",
    ),
    "bounds that are missing": ({"partitions": ({"contains_null": False},)}, "no bounds, though it holds values"),
}


@pytest.mark.parametrize("name", LINES)
def test_what_the_list_states_of_a_new_manifest(converted: Staged, name: str) -> None:
    change, fault = LINES[name]
    own = [each for each in converted.snapshot.manifests if each.snapshot_id == converted.snapshot.version]
    assert len(own) > 1
    wrong = next(each for each in own if each.deleted_files)
    manifests = tuple(replace(m, **change) if m == wrong else m for m in converted.snapshot.manifests)
    assert fault in converted.faults(manifests=manifests)


def test_a_manifest_that_stays_is_listed_as_it_was(converted: Staged) -> None:
    old = next(each for each in converted.snapshot.manifests if each.snapshot_id != converted.snapshot.version)
    manifests = tuple(replace(m, added_rows=1) if m == old else m for m in converted.snapshot.manifests)
    assert "its line in the manifest list changed" in converted.faults(manifests=manifests)


ENTRIES: dict[str, tuple[Callable[[Entry], Entry], str]] = {
    "added by another": (lambda e: replace(e, status=Status.ADDED), "expected a new file of"),
    "deleted by another": (lambda e: replace(e, snapshot_id=5), "deleted by 5"),
    "another number": (lambda e: replace(e, file=replace(e.file, sequence_number=99)), "numbers (99"),
    "no file of the parent": (lambda e: replace(e, file=replace(e.file, path="x")), "but no live file of the parent"),
    "another spec": (lambda e: replace(e, file=replace(e.file, spec_id=9)), "of spec 9 in a manifest of 0"),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_what_new_manifests_state_of_files_that_were_there(
    converted: Staged, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, fault = ENTRIES[name]
    read = manifest_audit.read_manifest

    def lying(*arguments: Any) -> list[Entry]:
        return [change(entry) if entry.status is Status.DELETED else entry for entry in read(*arguments)]

    monkeypatch.setattr(manifest_audit, "read_manifest", lying)
    assert fault in converted.faults()


# Bytes of a unit


def faults_of_unit(made: Staged, change: Callable[[IcebergUnit], IcebergUnit]) -> str:
    base, unit = (side.by_key[FIRST] for side in (made.parent, made.snapshot))
    assert not unit_faults(made.lake.ours.gate, base, unit)
    return "; ".join(unit_faults(made.lake.ours.gate, base, change(unit)))


def of_first(change: Callable[[ContentFile], ContentFile]) -> Callable[[IcebergUnit], IcebergUnit]:
    return lambda unit: replace(unit, files=(change(unit.files[0]), *unit.files[1:]))


def raw(**wrong: Any) -> Callable[[ContentFile], ContentFile]:
    """Metrics of the column `id`."""
    return lambda file: replace(
        file,
        raw={**file.raw, **{name: {**file.raw[name], 1: value} for name, value in wrong.items()}},  # type: ignore[dict-item]
    )


FILES: dict[str, tuple[Callable[[ContentFile], ContentFile], str]] = {
    "rows": (lambda file: replace(file, rows=3), "expected some and as many as its manifest states, 3"),
    "size": (lambda file: replace(file, bytes=3), "the manifest states 3 bytes"),
    "partition": (lambda file: replace(file, partition=("x",)), "of partition ('x',)"),
    "values": (raw(value_counts=3), "values, its manifest states 3"),
    "nulls": (raw(null_value_counts=3), "id has 0 nulls, its manifest states 3"),
    "a low bound": (raw(lower_bounds=(1000).to_bytes(8, "little")), "below its lower bound"),
    "a high bound": (raw(upper_bounds=(2).to_bytes(8, "little")), "above its upper bound"),
    "split offsets": (lambda file: replace(file, raw={**file.raw, "split_offsets": [4, 5]}), "split offsets [4, 5]"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_manifest_states_of_a_new_data_file(rewritten: Staged, name: str) -> None:
    change, fault = FILES[name]
    assert fault in faults_of_unit(rewritten, of_first(change))


def test_positions_of_a_new_delete_file(converted: Staged) -> None:
    if converted.lake.version == 3:
        pytest.skip("vectors are checked as they are read")
    unit = converted.snapshot.by_key[FIRST]
    delete = unit.positional[0]
    target = next(file for file in unit.files if file.path == delete.referenced)
    other = next(file for file in unit.files if file.path != delete.referenced)

    def instead(found: ContentFile) -> Callable[[IcebergUnit], IcebergUnit]:
        return lambda unit: replace(unit, positional=(found, *unit.positional[1:]))

    wrong = replace(delete, referenced=other.path)
    assert f"expected of {other.path} alone" in faults_of_unit(converted, instead(wrong))
    of_avro = instead(replace(delete, format="avro"))
    assert "of format avro, expected parquet or orc" in faults_of_unit(converted, of_avro)
    later = replace(delete, raw={**delete.raw, "split_offsets": [5], "sort_order_id": 1})
    told = faults_of_unit(converted, instead(later))
    assert "split offsets [5], its row groups begin at [4]" in told
    assert "sort_order_id, expected none of positions" in told
    storage, place = storage_of(converted.lake.ours), f"{delete.path}.new.parquet"
    new = write_positions(storage, place, replace(target, rows=1000), BitMap64([3, 900]))
    beyond = replace(
        delete,
        path=place,
        name=place.removeprefix("file://")[1:],
        rows=2,
        bytes=new.raw["file_size_in_bytes"],  # type: ignore[arg-type]
    )
    assert f"position 900, expected below {target.rows}" in faults_of_unit(converted, instead(beyond))
