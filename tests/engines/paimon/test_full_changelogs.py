"""changelog-producer = full-compaction: streaming readers see of ours what Java would have told them."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.changelogs import applied
from tests.formats.paimon.contents import files, leftovers
from tests.formats.paimon.followed import (
    COLUMNS,
    ENGINES,
    assert_spark_counts_wrong_changes,
    assert_told_as_by_java,
    created,
    read,
    unreported_in_spark,
    write,
)
from tests.formats.paimon.gate.test_changes import AFTER, BEFORE, CAUGHT, GONE, INSERT, KIND, changed, lose_the_list
from tests.formats.paimon.gate.test_sabotage import assert_stopped, before_the_gate
from tests.formats.paimon.keeping import expired, live_names, names, orphans
from tests.formats.paimon.upgrade import optimize

from nightkeep.model import Operation, Outcome

OPTIONS = {
    "bucket": "2",
    "write-only": "true",
    "changelog-producer": "full-compaction",
    "snapshot.num-retained.min": "1",
    "num-sorted-run.compaction-trigger": "2",
}
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
    return with_new_rows(paimon_java, tmp_path_factory.mktemp("base") / "t")


def with_new_rows(paimon_java: PaimonJava, folder: Path) -> Path:
    """A bucket with rows on the top level and new ones, of which a full compaction has every kind of change to tell."""
    table = created(paimon_java, folder, {**OPTIONS, "bucket": "1"})
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    write(paimon_java, table, 1)
    return table


@pytest.fixture
def table(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "t"))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ENGINES)
def test_a_reader_that_follows_sees_the_same_as_from_java(name: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    assert_told_as_by_java(paimon_java, tmp_path, OPTIONS, name, maintain=optimize, full=(True,) * 4)


def test_rows_below_the_top_level_wait_to_be_reported(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Merged with each other only, then in full: each of their changes is told once, from the row of the top level."""
    table, ample = tmp_path / "t", {"compaction.max-size-amplification-percent": "100000", "bucket": "1"}
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, "num-levels": "5", **ample}))
    # A large top level, which no compaction of a few rows takes.
    paimon_java.write(table, [("+I", k, k, "base") for k in range(20_000)], Writer(user="writer"))
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    since = paimon_java.snapshots(table)[-1]["id"]
    held = applied({}, paimon_java.changes(table, since=2).rows, [0])
    for number in range(1, 4):
        write(paimon_java, table, number)
    document = optimize(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert {file.level for file in paimon_java.files(table)} & {1, 2, 3}
    assert paimon_java.changes(table, since=since + 1).rows == ()
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert applied(held, paimon_java.changes(table, since=since + 1).rows, [0]) == read(paimon_java, table)


@pytest.mark.parametrize("name", SABOTAGES)
def test_the_gate_catches(name: str, table: Path) -> None:
    change, reason = CAUGHT[name]
    with before_the_gate(table, changed(change)):
        document = optimize(table, full=True)
    assert_stopped(table, document, reason)


def test_the_gate_catches_a_changelog_that_is_not_there(table: Path) -> None:
    with before_the_gate(table, lose_the_list):
        document = optimize(table, full=True)
    assert_stopped(table, document, "changes for streaming readers")
    assert optimize(table, full=True).outcome is Outcome.VERIFIED


@pytest.mark.extended
def test_spark_counts_every_wrong_change(table: Path, spark: SparkSession, paimon_java: PaimonJava) -> None:
    version = optimize(table, full=True).committed_version
    rows = assert_spark_counts_wrong_changes(table, version, spark)
    assert {INSERT, BEFORE, AFTER, GONE} == {*rows.column(KIND).to_pylist()}
    # A compaction below the top level tells nothing, and should not.
    write(paimon_java, table, 2)
    write(paimon_java, table, 3)
    minor = optimize(table).committed_version
    assert minor is not None
    assert unreported_in_spark(table, minor, spark)() == 0


def test_an_append_meanwhile_is_reported_by_the_next_run(table: Path, paimon_java: PaimonJava) -> None:
    held = applied({}, paimon_java.changes(table, since=2).rows, [0])
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    with waiting(table, operation=Operation.OPTIMIZE, full=True) as ours:
        paimon_java.write(table, [("+I", 1000, 1, "late"), ("-D", 12, 1, "")], Writer(user="writer"))
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    first = paimon_java.changes(table, since=since)
    held = applied(held, first.rows, [0])
    assert (1000,) not in held
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert applied(held, paimon_java.changes(table, since=first.next or 0).rows, [0]) == read(paimon_java, table)


def test_a_bucket_that_java_compacts_meanwhile_is_reported_by_java_only(table: Path, paimon_java: PaimonJava) -> None:
    held, before = applied({}, paimon_java.changes(table, since=2).rows, [0]), files(table)
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    with waiting(table, operation=Operation.OPTIMIZE, full=True) as ours:
        paimon_java.compact(table, Compaction(full=True, user="compactor"))
        document = ours.go_on()
    assert document["outcome"] == Outcome.CONFLICTED
    assert not [name for name in leftovers(table, before) if "nk-" in name]
    assert applied(held, paimon_java.changes(table, since=since).rows, [0]) == read(paimon_java, table)


def test_expiry_takes_the_changelogs_of_what_expires(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Nightkeep's and Java's expiry leave the same files of a history that both have compacted."""
    ours = created(
        paimon_java, tmp_path / "ours", {**OPTIONS, "snapshot.time-retained": "0 ms", "snapshot.num-retained.max": "2"}
    )
    for number in range(1, 4):
        assert optimize(ours, full=True).outcome is Outcome.VERIFIED
        write(paimon_java, ours, 2 * number)
        paimon_java.compact(ours, Compaction(full=True, user="compactor"))
        write(paimon_java, ours, 2 * number + 1)
    java = Path(shutil.copytree(ours, tmp_path / "java"))
    before, shown = {name for name in names(ours) if "/changelog-" in name}, read(paimon_java, ours)

    done = expired(ours)
    paimon_java.expire_as_configured(java)

    assert done.outcome is Outcome.VERIFIED
    left = {name for name in names(ours) if "/changelog-" in name}
    assert left < before and {*live_names(ours)} <= names(ours)
    assert names(ours) - {"snapshot/EARLIEST"} == names(java) - {"snapshot/EARLIEST"}
    assert orphans(ours) == []
    assert read(paimon_java, ours) == shown


def test_levels_above_those_of_the_table_are_refused(table: Path, paimon_java: PaimonJava) -> None:
    """Java's full compaction writes the highest level there is, and tells nothing where that is not the table's own."""
    paimon_java.alter(table, {"change": "set_option", "name": "num-levels", "value": "2"})
    document = optimize(table, full=True)
    assert document.outcome is Outcome.REFUSED
    assert "files on level 2, above the top level 1, are not handled" in str(document.reason)
    since = paimon_java.snapshots(table)[-1]["id"] + 1
    assert paimon_java.compact(table, Compaction(full=True, user="compactor")).snapshot
    assert paimon_java.changes(table, since=since).rows == ()
