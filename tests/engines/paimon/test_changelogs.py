"""Streaming readers of Paimon Java, who follow a table that Nightkeep upgrades: they see what Java would have told."""

import shutil
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.changelogs import applied
from tests.formats.paimon.followed import COLUMNS, ENGINES, assert_told_as_by_java, created, read, write
from tests.formats.paimon.gate.test_sabotage import renumber
from tests.formats.paimon.keeping import expired, live_names, names, orphans
from tests.formats.paimon.upgrade import upgrade

from nightkeep.model import Outcome

OPTIONS = {
    "bucket": "2",
    "deletion-vectors.enabled": "true",
    "write-only": "true",
    "changelog-producer": "lookup",
    "snapshot.num-retained.min": "1",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ENGINES)
def test_a_reader_that_follows_sees_the_same_as_from_java(name: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    rounds = (False, False, True, False)
    assert_told_as_by_java(paimon_java, tmp_path, OPTIONS, name, maintain=upgrade, full=rounds)


def test_each_commit_of_a_run_reports_its_own_buckets(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = created(paimon_java, tmp_path / "t", OPTIONS)
    assert upgrade(table, commit_size="1B").outcome is Outcome.VERIFIED
    held = read(paimon_java, table)
    write(paimon_java, table, 1)
    document = upgrade(table, commit_size="1B")
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 6)
    told = [paimon_java.changelog(table, snapshot=number) for number in (5, 6)]
    assert sorted(file.bucket for files in told for file in files) == [0, 1]
    changes = paimon_java.changes(table, since=5)
    assert changes.next == 7
    assert applied(held, changes.rows, [0]) == read(paimon_java, table)


@pytest.mark.parametrize("batches", [1, 2])
def test_rows_that_are_older_than_what_they_meet(batches: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Two writers have numbered on their own. Of a merge the newer row stays, and both engines tell so. A file that
    Java lifts as it is shows its older rows, and Java's changelog does not say so: ours is not published."""
    ours = tmp_path / "ours"
    paimon_java.create(ours, Layout(COLUMNS, ["k"], options={**OPTIONS, "bucket": "1"}))
    paimon_java.write(ours, [("+I", k, k, "base") for k in range(20_000)], Writer(user="writer"))
    paimon_java.compact(ours, Compaction(full=True, user="compactor"))
    for batch in range(batches):
        paimon_java.write(ours, [("+U", k, k, f"late {batch}") for k in range(500, 510)], Writer(user="writer"))
        renumber(ours, first=10 * batch)
    java = Path(shutil.copytree(ours, tmp_path / "java"))
    since = paimon_java.snapshots(ours)[-1]["id"] + 1
    held = read(paimon_java, ours)

    paimon_java.compact(java, Compaction(user="compactor", single_pick=True))
    document = upgrade(ours)

    theirs = paimon_java.changes(java, since=since).rows
    assert applied(held, theirs, [0]) == held
    if batches == 1:
        assert read(paimon_java, java) != held
        assert document.outcome is Outcome.MISMATCH
        assert "10 keys" in str(document.reason)
    else:
        assert document.outcome is Outcome.VERIFIED
        assert paimon_java.changes(ours, since=since).rows == theirs
        assert read(paimon_java, ours) == read(paimon_java, java) == held


def test_an_upgraded_row_is_reported_as_readers_see_it(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java tells what a merge makes of the row alone, which drops the values of a group without a sequence. Its readers
    see them, and its next changelog takes back a row that it never told."""
    group = {"merge-engine": "partial-update", "fields.n.sequence-group": "note", "bucket": "1"}
    ours = tmp_path / "ours"
    paimon_java.create(ours, Layout(COLUMNS, ["k"], options={**OPTIONS, **group}))
    paimon_java.write(ours, [("+I", 1, None, "kept"), ("+I", 2, 1, "told")], Writer(user="writer"))
    java = Path(shutil.copytree(ours, tmp_path / "java"))

    paimon_java.compact(java, Compaction(user="compactor"))
    assert upgrade(ours).outcome is Outcome.VERIFIED

    assert read(paimon_java, ours) == read(paimon_java, java) == {(1,): (1, None, "kept"), (2,): (2, 1, "told")}
    assert paimon_java.changes(java, since=2).rows == (("+I", 1, None, None), ("+I", 2, 1, "told"))
    assert applied({}, paimon_java.changes(ours, since=2).rows, [0]) == read(paimon_java, ours)


def test_changes_outlive_their_snapshots_where_java_keeps_them(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Long-lived changelogs: Java's expiry puts them aside, and a reader that was away goes on with them."""
    table = created(
        paimon_java, tmp_path / "t", {**OPTIONS, "snapshot.num-retained.max": "9", "changelog.num-retained.max": "100"}
    )
    for number in range(1, 4):
        assert upgrade(table).outcome is Outcome.VERIFIED
        write(paimon_java, table, number)
    told = paimon_java.changes(table, since=1).rows
    shown = read(paimon_java, table)

    assert paimon_java.expire(table, retain_max=1, changelog_retain_max=100) > 0

    assert (table / "changelog").exists()
    assert {*live_names(table)} <= names(table)
    assert paimon_java.changes(table, since=1).rows == told
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert paimon_java.changes(table, since=1).rows[: len(told)] == told
    assert applied({}, paimon_java.changes(table, since=1).rows, [0]) == read(paimon_java, table)
    assert shown != read(paimon_java, table)


def test_expiry_takes_the_changelogs_of_what_expires(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Nightkeep's and Java's expiry leave the same files of a history that both have compacted."""
    ours = created(
        paimon_java, tmp_path / "ours", {**OPTIONS, "snapshot.time-retained": "0 ms", "snapshot.num-retained.max": "2"}
    )
    for number in range(1, 4):
        assert upgrade(ours).outcome is Outcome.VERIFIED
        write(paimon_java, ours, 2 * number)
        paimon_java.compact(ours, Compaction(user="compactor"))
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
