"""What is packed of a table without keys, and what the new files say of themselves, as Java's own compaction does."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import JavaFile, Layout
from tests.formats.paimon.appended import DAYS, SMALL, VALUES, VECTORS, Appended, operate
from tests.formats.paimon.contents import opened

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append import optimize
from nightkeep.formats.paimon.rewrite.append.optimize import AppendPack
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask
from nightkeep.model import Operation, Outcome, Request

REQUEST = Request(Operation.OPTIMIZE, 0)


@pytest.mark.parametrize("bitmap64", ["false", "true"])
def test_small_files_become_one_and_lose_their_vectors(paimon_java: PaimonJava, tmp_path: Path, bitmap64: str) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL, "deletion-vectors.bitmap64": bitmap64})
    for _ in range(4):
        table.append(30)
    for _ in range(3):
        table.delete(0.2, files=0.5)
    assert len({entry.index_file for entry in paimon_java.vectors(table.folder)}) > len(DAYS)
    before, numbers = table.rows(), {day: min(f.min_sequence for f in fs) for day, fs in table.files_by_day().items()}
    document = table.optimize()
    assert (document.outcome, table.rows(), table.vectors()) == (Outcome.VERIFIED, before, {})
    for day, (file,) in table.files_by_day().items():
        assert (file.level, file.delete_rows, file.source, file.total_buckets) == (0, 0, "COMPACT", -1)
        assert (file.min_sequence, file.max_sequence) == (numbers[day], numbers[day] + file.rows - 1)
    assert sum(file.rows for file in table.files()) == len(before)
    snapshot = paimon_java.snapshot(table.folder)
    assert snapshot is not None
    assert (snapshot["commitKind"], snapshot["totalRecordCount"]) == ("COMPACT", len(before))
    assert table.optimize().outcome is Outcome.UNCHANGED


def test_new_files_state_what_those_of_java_state(paimon_java: PaimonJava, tmp_path: Path) -> None:
    ours = Appended.create(paimon_java, tmp_path / "ours", VECTORS, partitioned=False)
    for _ in range(6):
        ours.append(40)
    java = replace(ours, folder=Path(shutil.copytree(ours.folder, tmp_path / "java")))
    paimon_java.compact(java.folder)
    assert ours.optimize().outcome is Outcome.VERIFIED
    (theirs,), (mine,) = java.files(), ours.files()
    assert _said(mine) == _said(theirs)
    assert java.rows() == ours.rows()


def _said(file: JavaFile) -> tuple[object, ...]:
    # Of floats we say less than Java, or more carefully: no bounds with NaN, and zeros of both signs. Java has no
    # bounds of what it stores as INT96.
    others = {name for name, kind in VALUES if kind in ("FLOAT", "DOUBLE", "TIMESTAMP(9)")}
    stats = {name: told for name, told in file.value_stats.items() if name not in others}
    return (
        file.partition,
        file.bucket,
        file.total_buckets,
        file.level,
        file.rows,
        file.delete_rows,
        file.source,
        file.min_sequence,
        file.max_sequence,
        file.schema_id,
        file.first_row_id,
        file.extra_files,
        stats,
    )


def test_files_that_are_left_apart_stay_apart(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Six files of a day make bins of one file each, and no run packs them again until a new file comes."""
    table = Appended.create(paimon_java, tmp_path / "t", {})
    for _ in range(6):
        table.append(40, days=("d",))
    before, target = table.rows(), f"{int(2.5 * max(file.size for file in table.files()))}B"
    assert table.optimize(target_size=target).outcome is Outcome.VERIFIED
    assert len(table.files()) == 3 and table.rows() == before
    assert table.optimize(target_size=target).outcome is Outcome.UNCHANGED


def test_few_small_files_wait_for_others(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Five by default, as for Java (compaction.min.file-num); --full does not wait."""
    table = Appended.create(paimon_java, tmp_path / "t", {})
    for _ in range(4):
        table.append(3, days=("d",))
    assert table.optimize().outcome is Outcome.UNCHANGED
    copy = replace(table, folder=Path(shutil.copytree(table.folder, tmp_path / "full")))
    assert copy.optimize(full=True).outcome is Outcome.VERIFIED and len(copy.files()) == 1
    table.append(3, days=("d",))
    assert table.optimize().outcome is Outcome.VERIFIED and len(table.files()) == 1


@pytest.mark.parametrize(("deleted", "outcome"), [(20, Outcome.UNCHANGED), (21, Outcome.VERIFIED)])
def test_a_file_is_rewritten_alone_above_a_fifth_of_its_rows(
    paimon_java: PaimonJava, tmp_path: Path, deleted: int, outcome: Outcome
) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, partitioned=False)
    table.append(100)
    (file,) = table.files()
    paimon_java.delete_positions(table.folder, {file.name: range(deleted)})
    before = table.rows()
    assert (table.optimize().outcome, table.rows()) == (outcome, before)
    assert table.optimize(max_deleted_ratio=0.0).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert not table.vectors() and table.rows() == before


def test_a_file_without_live_rows_is_only_removed(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, partitioned=False)
    for _ in range(2):
        table.append(10)
    gone, _ = table.files()
    paimon_java.delete_positions(table.folder, {gone.name: range(10)})
    before = table.rows()
    assert table.optimize().outcome is Outcome.VERIFIED
    assert [file.rows for file in table.files()] == [10] and table.rows() == before and not table.vectors()


def test_vectors_of_files_that_stay_move_on_with_theirs(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """One vector file has vectors of a file that is rewritten and of one that is not."""
    table = Appended.create(paimon_java, tmp_path / "t", VECTORS, partitioned=False)
    for _ in range(3):
        table.append(50)
    worn, kept, _ = (file.name for file in table.files())
    paimon_java.delete_positions(table.folder, {worn: range(40), kept: [3, 5]})
    before = table.rows()
    assert table.optimize(min_file_size="1B").outcome is Outcome.VERIFIED
    assert table.vectors() == {kept: [3, 5]} and table.rows() == before
    paimon_java.delete_positions(table.folder, {kept: [5, 6]})
    assert table.vectors() == {kept: [3, 5, 6]}


def test_rows_of_older_schemas_are_found_by_field_id(paimon_java: PaimonJava, tmp_path: Path) -> None:
    columns = (("a", "INT"), ("b", "STRING"), ("c", "DECIMAL(7, 2)"))
    table = Appended.create(paimon_java, tmp_path / "t", SMALL, columns=columns, partitioned=False)
    table.append(20)
    paimon_java.alter(
        table.folder,
        {"change": "rename_column", "name": "a", "to": "was_a"},
        {"change": "drop_column", "name": "b"},
        {"change": "change_type", "name": "c", "type": "DECIMAL(20, 4)"},
    )
    paimon_java.alter(table.folder, {"change": "add_column", "name": "b", "type": "BIGINT"})
    table.columns[2:] = [("was_a", "INT"), ("c", "DECIMAL(20, 4)"), ("b", "BIGINT")]
    table.append(20)
    before = table.rows()
    assert table.optimize().outcome is Outcome.VERIFIED
    (file,) = table.files()
    assert table.rows() == before and file.schema_id == 2
    (path,) = table.folder.rglob(file.name)
    assert pq.read_schema(path).names == ["id", "day", "was_a", "c", "b"]


def test_work_on_files_without_vectors_has_no_pruning(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {**VECTORS, **SMALL}, partitioned=False)
    for _ in range(3):
        table.append(10)
    assert [type(task) for task in _tasks(table)] == [AppendPack.__origin__]
    paimon_java.delete_positions(table.folder, {table.files()[0].name: [1]})
    _, prune = _tasks(table)
    assert isinstance(prune, PruneTask) and prune.gone == {file.name for file in table.files()}


def _tasks(table: Appended) -> tuple[object, ...]:
    snapshot = opened(table.folder).snapshot()
    work = optimize.pack_files(snapshot, snapshot.units[0], REQUEST)
    assert work is not None
    return work.tasks


@pytest.mark.parametrize(
    ("options", "keys", "message"),
    [
        ({"bucket": "2", "deletion-vectors.enabled": "true"}, ["id"], "option deletion-vectors.enabled = true"),
        ({"bucket": "-1", "row-tracking.enabled": "true"}, [], "option row-tracking.enabled = true is not handled"),
        (
            {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"},
            [],
            "row-tracking.enabled = true is not handled",
        ),
        (
            {"bucket": "-1", "clustering.incremental": "true", "clustering.columns": "id"},
            [],
            "option clustering.incremental = true is not handled",
        ),
    ],
)
def test_what_is_not_handled_is_refused_by_name(
    paimon_java: PaimonJava, tmp_path: Path, options: dict[str, str], keys: list[str], message: str
) -> None:
    paimon_java.create(tmp_path / "t", Layout([("id", "INT NOT NULL"), ("text", "STRING")], keys, [], options))
    paimon_java.write(tmp_path / "t", [("+I", n, "x") for n in range(10)])
    document = operate(tmp_path / "t", Operation.OPTIMIZE)
    assert document.outcome is Outcome.REFUSED and message in str(document.reason)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("_WRITE_COLS", ["id"], "only some columns"), ("_FIRST_ROW_ID", 7, "row ids"), ("_LEVEL", 1, "on level 1")],
)
def test_files_of_other_features_are_refused_by_name(
    paimon_java: PaimonJava, tmp_path: Path, field: str, value: object, message: str
) -> None:
    table = Appended.create(paimon_java, tmp_path / "t", {}, partitioned=False)
    table.append(3)
    snapshot = opened(table.folder).snapshot()
    optimize.refuse_unhandled(snapshot, REQUEST)
    with pytest.raises(RefusedTable, match=message):
        optimize.refuse_unhandled(_with(snapshot, field, value), REQUEST)


def _with(snapshot: PaimonSnapshot, field: str, value: object) -> PaimonSnapshot:
    (bucket,) = snapshot.units
    (file,) = bucket.files
    record = {**file.record, field: value}
    other = replace(file, record=record, level=int(record["_LEVEL"]))
    return replace(snapshot, units=(replace(bucket, files=(other,)),))
