"""changelog-producer = lookup without deletion vectors: readers who follow see of ours what Java would have told."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.changelogs import applied
from tests.formats.paimon.contents import files, leftovers, opened
from tests.formats.paimon.followed import (
    COLUMNS,
    ENGINES,
    assert_spark_counts_wrong_changes,
    assert_told_as_by_java,
    created,
    read,
    write,
)
from tests.formats.paimon.gate.test_changes import AFTER, BEFORE, CAUGHT, GONE, INSERT, KIND, changed, lose_the_list
from tests.formats.paimon.gate.test_sabotage import assert_stopped, before_the_gate
from tests.formats.paimon.upgrade import optimize

from nightkeep.checking.check import check
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

OPTIONS = {"bucket": "2", "write-only": "true", "changelog-producer": "lookup", "snapshot.num-retained.min": "1"}

SABOTAGES = (
    "an insert is missing",
    "a delete is missing",
    "an update is missing",
    "half an update is missing",
    "an insert is doubled",
    "a row after is another",
    "an insert is called an update",
    "a row before is called a delete",
    "a delete is called an insert",
    "a sequence number is another",
)


@pytest.fixture(scope="module")
def base(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with a large top level, which no compaction takes, and new rows with every kind of change to tell."""
    table = tmp_path_factory.mktemp("base") / "t"
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, "bucket": "1"}))
    paimon_java.write(table, [("+I", k, k, "base") for k in range(-20_000, 40)], Writer(user="writer"))
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    write(paimon_java, table, 1)
    return table


@pytest.fixture
def table(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "t"))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ENGINES)
def test_a_reader_that_follows_sees_the_same_as_from_java(name: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    rounds = (False, False, True, False)
    assert_told_as_by_java(paimon_java, tmp_path, OPTIONS, name, maintain=optimize, full=rounds)


def test_what_is_replaced_below_is_reported_and_stays(table: Path, paimon_java: PaimonJava) -> None:
    """A file that is lifted as it is keeps its deletes: they hide the rows below until a compaction meets both."""
    held, shown = applied({}, paimon_java.changes(table, since=2).rows, [0]), read(paimon_java, table)
    (top,) = {file.level for file in paimon_java.files(table) if file.level > 0}
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    (lifted,) = (file for file in paimon_java.files(table) if file.level != top)
    assert 0 < lifted.level < top and lifted.delete_rows
    told = paimon_java.changes(table, since=4).rows
    assert {"+I", "-U", "+U", "-D"} == {kind for kind, *_ in told}
    assert applied(held, told, [0]) == read(paimon_java, table) == shown
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert paimon_java.changes(table, since=since).rows == ()
    assert read(paimon_java, table) == shown
    assert not any(file.delete_rows for file in paimon_java.files(table))


@pytest.mark.parametrize("name", SABOTAGES)
def test_the_gate_catches(name: str, table: Path) -> None:
    change, reason = CAUGHT[name]
    with before_the_gate(table, changed(change)):
        document = optimize(table)
    assert_stopped(table, document, reason)


def test_the_gate_catches_a_changelog_that_is_not_there(table: Path) -> None:
    with before_the_gate(table, lose_the_list):
        document = optimize(table)
    assert_stopped(table, document, "changes for streaming readers")
    assert optimize(table).outcome is Outcome.VERIFIED


def test_an_older_row_that_wins_is_written_and_proven(
    paimon_java: PaimonJava, tmp_path: Path, spark: SparkSession
) -> None:
    """By sequence.field a row below wins over a new one: it is written again, above the place where it stays."""
    table = tmp_path / "t"
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, "bucket": "1", "sequence.field": "n"}))
    paimon_java.write(table, [("+I", k, 10, "base") for k in range(20_000)], Writer(user="writer"))
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    rows = [("+I", 5, 3, "late"), ("+I", 6, 11, "newer"), ("-D", 7, 12, ""), ("-D", 8, 1, "")]
    paimon_java.write(table, rows, Writer(user="writer"))
    shown, since = read(paimon_java, table), paimon_java.snapshots(table)[-1]["id"] + 1
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    (fresh,) = (file for file in opened(table).snapshot().units[0].files if file.rows < 10)
    assert (fresh.rows, fresh.delete_rows) == (4, 1)
    assert read(paimon_java, table) == shown
    assert [shown.get((k,)) for k in (5, 6, 7, 8)] == [(5, 10, "base"), (6, 11, "newer"), None, (8, 10, "base")]
    told = paimon_java.changes(table, since=since).rows
    assert {row for row in told if row[1] in (6, 7)} == {
        ("-U", 6, 10, "base"),
        ("+U", 6, 11, "newer"),
        ("-D", 7, 10, "base"),
    }
    assert _is_sound(table, document.committed_version, spark)


@pytest.mark.extended
def test_spark_counts_every_wrong_change(table: Path, spark: SparkSession) -> None:
    rows = assert_spark_counts_wrong_changes(table, optimize(table).committed_version, spark)
    assert {INSERT, BEFORE, AFTER, GONE} == {*rows.column(KIND).to_pylist()}


def test_an_append_meanwhile_is_reported_by_the_next_run(table: Path, paimon_java: PaimonJava) -> None:
    held = applied({}, paimon_java.changes(table, since=2).rows, [0])
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    with waiting(table, operation=Operation.OPTIMIZE) as ours:
        paimon_java.write(table, [("+I", 1000, 1, "late"), ("-D", 12, 1, "")], Writer(user="writer"))
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    first = paimon_java.changes(table, since=since)
    held = applied(held, first.rows, [0])
    assert (1000,) not in held
    assert optimize(table).outcome is Outcome.VERIFIED
    assert applied(held, paimon_java.changes(table, since=first.next or 0).rows, [0]) == read(paimon_java, table)


def test_a_bucket_that_java_compacts_meanwhile_is_reported_by_java_only(table: Path, paimon_java: PaimonJava) -> None:
    held, before = applied({}, paimon_java.changes(table, since=2).rows, [0]), files(table)
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    with waiting(table, operation=Operation.OPTIMIZE) as ours:
        paimon_java.compact(table, Compaction(user="compactor"))
        document = ours.go_on()
    assert document["outcome"] == Outcome.CONFLICTED
    assert not [name for name in leftovers(table, before) if "nk-" in name]
    assert applied(held, paimon_java.changes(table, since=since).rows, [0]) == read(paimon_java, table)


def test_retracts_that_java_would_make_rows_of_are_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Readers of an aggregation see nothing of a retract that meets no row, until Java's compaction makes it one."""
    table = tmp_path / "t"
    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "1"}
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, **sums}))
    paimon_java.write(table, [("+I", 1, 5, "a"), ("-D", 2, 3, "b")], Writer(user="writer"))
    document = optimize(table)
    assert document.outcome is Outcome.REFUSED
    assert "holds retracts of an aggregation that looks up, which is not handled" in str(document.reason)
    assert [*read(paimon_java, table)] == [(1,)]
    paimon_java.compact(table, Compaction(user="compactor"))
    assert read(paimon_java, table) == {(1,): (1, 5, "a"), (2,): (2, -3, None)}


def test_deletes_of_merged_rows_take_all_runs(paimon_java: PaimonJava, tmp_path: Path, spark: SparkSession) -> None:
    """A delete that stayed above older rows would have values that later merges begin with."""
    table = tmp_path / "t"
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, **ENGINES["partial-update"], "bucket": "1"}))
    paimon_java.write(table, [("+I", k, k, "base") for k in range(20_000)], Writer(user="writer"))
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    paimon_java.write(table, [("+I", 5, None, "text"), ("+I", 30_000, 1, None)], Writer(user="writer"))
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED and document.plan is not None
    assert "taken with all older runs" not in document.plan.units[0].reason
    assert len({file.level for file in paimon_java.files(table)}) == 2
    assert _is_sound(table, document.committed_version, spark)
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    paimon_java.write(table, [("-D", 6, None, None), ("+I", 5, 7, None)], Writer(user="writer"))
    shown = read(paimon_java, table)
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED and document.plan is not None
    assert "taken with all older runs: they hold deletes" in document.plan.units[0].reason
    assert _is_sound(table, document.committed_version, spark)
    assert read(paimon_java, table) == shown and shown[5,] == (5, 7, "text")
    assert set(paimon_java.changes(table, since=since).rows) == {
        ("-U", 5, 5, "text"),
        ("+U", 5, 7, "text"),
        ("-D", 6, 6, "base"),
    }


@pytest.mark.extended
@pytest.mark.parametrize("options", [{"file.format": "orc"}, {"file.format": "avro"}, {"data-file.thin-mode": "true"}])
@pytest.mark.in_turn("options")
def test_changes_are_reported_in_files_of_the_table(
    options: dict[str, str], paimon_java: PaimonJava, tmp_path: Path, spark: SparkSession
) -> None:
    table = created(paimon_java, tmp_path / "t", {**OPTIONS, **options})
    for number in (1, 2):
        document = optimize(table)
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert _is_sound(table, document.committed_version, spark)
        write(paimon_java, table, number)
    assert optimize(table).outcome is Outcome.VERIFIED
    assert applied({}, paimon_java.changes(table, since=2).rows, [0]) == read(paimon_java, table)


def _is_sound(table: Path, version: int | None, spark: SparkSession) -> bool:
    """Whether the check by Spark passes, changes for streaming readers included."""
    report = check(CheckRequest(address=Address("paimon", str(table), "t"), version=version), spark=spark)
    told = [result.status for result in report.results if result.name == "streaming readers receive every change"]
    return report.status is CheckStatus.PASSED and told == [CheckStatus.PASSED]
