"""Sweeps and expiries of Iceberg tables, judged by iceberg-spark's own and by readers of every snapshot."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg.breaking import SWAP, breaking, care_and_die
from tests.formats.iceberg.oracle_readers import Readers
from tests.formats.iceberg.runs import COLUMNS, DAYS, Kept, care_for, changed, configured, folder, opened, row, token
from tests.formats.iceberg.sweeping import UUID, aged, listed, needed_by, now_ms, old, planted, stored, swept
from tests.support.faulty_store import Fuse
from tests.support.processes import child

from nightkeep.errors import RefusedTable
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets

pytestmark = pytest.mark.in_turn("version")

PER_DAY = (("day", "identity"),)
ODD_DAYS = ("a b", "100%", "x/y", "%2F", "\u00e4\u4e16", "q=1", "_hidden", "+")


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield iceberg.table()


def expired(table: Table, *, retain_last: int = 1) -> ExpiryResult:
    """Of a table whose snapshots have all become old, with the files that no other version needs."""
    old(table)
    sets = MemorySets()
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms(), retain_last=retain_last), Retention(now_ms(), 0))
    run = Run("expiry", "0" * 16, "a", now_ms())
    done = expire_versions(opened(table).retention, order, run, sets=lambda: sets, before=lambda *_: None)
    sets.close()
    return done


def test_a_clock_that_is_ahead_keeps_no_writer_out(table: Table, iceberg_java: IcebergJava) -> None:
    """Java refuses a table that was last updated more than a minute from now."""

    def ahead() -> int:
        return now_ms() + 30 * 60_000

    changed(iceberg_java, table, version=2)
    old(table)
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(ahead()), Retention(ahead(), 0))
    run = Run("expiry", "0" * 16, "a", ahead())
    done = expire_versions(opened(table).retention, order, run, sets=MemorySets, before=lambda *_: None, clock=ahead)
    assert (done.outcome, len(table.document()["snapshots"])) == (Outcome.VERIFIED, 1)
    assert table.document()["last-updated-ms"] <= now_ms()
    iceberg_java.append(table, [row(DAYS[0], 7000)])


def test_an_expiry_removes_statistics_of_its_versions_as_java_does(table: Table, iceberg_java: IcebergJava) -> None:
    """Files of table and of partition statistics; those of the version that stays stay."""
    java = iceberg_java
    changed(java, table, version=2)
    for _ in range(2):
        statistics = {java.statistics(table), java.statistics(table, kind="partition")}
        java.append(table, [row(DAYS[0], 900)])
    last = {java.statistics(table), java.statistics(table, kind="partition")}
    assert {stored(path) for path in statistics | last} <= listed(table)
    before = listed(table)
    done = expired(table)
    assert done.outcome is Outcome.VERIFIED
    left = listed(table)
    named = {name for name in before if "stats" in name.rpartition("/")[2]}
    assert len(named) == 6
    assert named & left == {stored(path) for path in last}
    assert not swept(table, older_than_ms=0, below_floor=True).orphans.keys() & named


def spark_orphans(spark: IcebergSpark, table: Table, *, dry_run: bool = True) -> frozenset[str]:
    """Files older than three days, as iceberg-spark finds them."""
    spark.attach(table.warehouse)
    call = f"CALL {table.warehouse.name}.system.remove_orphan_files(table => '{table.name}', dry_run => {dry_run})"
    return frozenset(map(stored, spark.sql(call).column("orphan_file_location")))


def every_version(java: IcebergJava, table: Table) -> dict[int, Rows]:
    return {
        each["snapshot-id"]: java.read(table, snapshot=each["snapshot-id"]) for each in table.document()["snapshots"]
    }


def leftovers(java: IcebergJava, table: Table) -> None:
    """What writers of Java leave that die before they commit: data, deletes by key and by position, vectors."""
    java.rows(table, [row(day, 7000) for day in DAYS])
    java.checkpoint(table, [("+U", row(DAYS[0], 35)), ("+U", row(DAYS[0], 35, "b"))], keys=["id", "day"])
    java.begin_rewrite(table, options={"rewrite-all": "true"})


# Against iceberg-spark


@pytest.mark.extended
@pytest.mark.parametrize("version", [2, 3])
def test_orphans_are_those_that_spark_finds(
    version: int, table: Table, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark
) -> None:
    java = iceberg_java
    changed(java, table, version=version)
    java.statistics(table)
    java.statistics(table, kind="partition")
    java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": table.document()["current-snapshot-id"]})
    java.append(table, [row(DAYS[0], 900)], branch="dev")
    java.commit_rewrite(table, java.begin_rewrite(table, options={"rewrite-all": "true"}))
    before = listed(table)
    leftovers(java, table)
    left = listed(table) - before
    assert len(left) >= 7
    aged(folder(table))
    expected, versions = spark_orphans(iceberg_spark, table), every_version(java, table)
    assert left <= expected
    found = swept(table, older_than_ms=3 * DAY_MS)
    assert frozenset(found.orphans) == expected == left
    done = swept(table, SweepMode.DELETE, older_than_ms=3 * DAY_MS)
    assert (done.swept.outcome, done.swept.acted.files) == (Outcome.VERIFIED, len(left))
    assert listed(table) >= before and not left & listed(table)
    assert every_version(java, table) == versions
    assert spark_orphans(iceberg_spark, table) == frozenset()


def test_where_we_are_more_careful_than_spark(
    table: Table, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark
) -> None:
    """Names that no engine gives a table's files, and what another table has inside of the folder."""
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY))
    iceberg_java.append(table, [row(day, 1) for day in DAYS])
    orphan = planted(table, f"data/day=2026-11-01/00000-0-{UUID}-00001.parquet")
    careful = planted(
        table,
        "data/export.parquet",
        "README.md",
        f"data/u/data/00000-0-{UUID}-00001.parquet",
        "data/u/metadata/00000-x.metadata.json",
    )
    aged(folder(table))
    assert spark_orphans(iceberg_spark, table) == orphan | careful
    assert frozenset(swept(table).orphans) == orphan


def test_a_nested_table_is_left_alone(table: Table, iceberg_java: IcebergJava) -> None:
    iceberg_java.create(table, COLUMNS)
    iceberg_java.append(table, [row(DAYS[0], 1)])
    inner = table.warehouse.table("db.inner")
    iceberg_java.create(inner, COLUMNS, Layout(location=f"file:{folder(table)}/data/inner"))
    iceberg_java.append(inner, [row(DAYS[0], 2)])
    leftovers(iceberg_java, inner)
    aged(folder(table))
    assert not swept(table).orphans
    # Whose the files in it are, nobody can tell: the outer table's location holds them too.
    with pytest.raises(RefusedTable, match="claimed by table"):
        swept(inner)


def test_paths_of_properties_are_swept_if_asked(table: Table, iceberg_java: IcebergJava, tmp_path: Path) -> None:
    """Spark looks into the table's location alone."""
    elsewhere = tmp_path / "fast" / "db" / "t"
    paths = {"write.data.path": f"file:{elsewhere}/files", "write.metadata.path": f"file:{elsewhere}/versions"}
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY, properties=paths))
    iceberg_java.append(table, [row(day, 1) for day in DAYS])
    shown = iceberg_java.read(table)
    location = iceberg_java.describe(table)["location"].removeprefix("file:")
    if Path(location).name != "t" or Path(location).parent.name != "db":
        pytest.fail(f"expected the folder db/t, found {location}")
    before = {path for path in elsewhere.rglob("*") if path.is_file()}
    iceberg_java.rows(table, [row(DAYS[0], 7000)])
    left = {stored(path) for path in elsewhere.rglob("*") if path.is_file() and path not in before}
    aged(elsewhere)
    assert not swept(table).orphans
    found = swept(table, SweepMode.DELETE, outside=True).orphans
    assert found.keys() == {name for name in left if not name.endswith(".crc")} and found
    assert iceberg_java.read(table) == shown


# What is live


@pytest.mark.parametrize("version", [2, 3])
def test_odd_names_are_the_same_to_the_folder_and_to_metadata(
    version: int, table: Table, iceberg_java: IcebergJava
) -> None:
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY, version))
    iceberg_java.append(table, [row(day, number) for number, day in enumerate(ODD_DAYS)])
    iceberg_java.cdc(table, [("+U", row(day, number)) for number, day in enumerate(ODD_DAYS)], keys=["id", "day"])
    shown, before = iceberg_java.read(table), listed(table)
    iceberg_java.rows(table, [row(day, number) for number, day in enumerate(ODD_DAYS)])
    left = listed(table) - before
    aged(folder(table))
    assert len(left) == len(ODD_DAYS)
    assert swept(table, SweepMode.DELETE).orphans.keys() == left
    assert iceberg_java.read(table) == shown


@pytest.mark.few(1)
@pytest.mark.parametrize("flink_name", [True, False])
def test_a_puffin_file_of_which_one_vector_is_live_stays(
    flink_name: bool, table: Table, iceberg_java: IcebergJava
) -> None:
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY, 3))
    iceberg_java.append(table, [row(day, number) for day in DAYS[:2] for number in range(4)])
    first, second = (task["file_path"] for task in iceberg_java.tasks(table))
    vectors = iceberg_java.vectors(table, [(first, 0), (second, 1)], flink_name=flink_name)
    iceberg_java.commit(table, vectors)
    gone = iceberg_java.vectors(table, [(first, 1), (second, 2)], flink_name=flink_name)
    iceberg_java.commit(table, iceberg_java.vectors(table, [(first, 2)], flink_name=flink_name))
    aged(folder(table))
    done = expired(table)
    assert done.outcome is Outcome.VERIFIED
    orphans = swept(table, SweepMode.DELETE).orphans
    (shared,), (dead,) = ({stored(path) for path in written.paths} for written in (vectors, gone))
    assert dead in orphans and shared not in orphans and shared in listed(table)
    assert len(iceberg_java.read(table).rows) == 8 - 3


def test_a_commit_during_the_sweep_survives(table: Table, iceberg_java: IcebergJava) -> None:
    """Files of a writer that wrote long ago, as it seems, and commits just as we have listed them (Iceberg #4194)."""
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY))
    iceberg_java.append(table, [row(DAYS[0], 1)])
    orphan = planted(table, f"data/00000-0-{UUID}-00001.parquet")
    late = iceberg_java.rows(table, [row(DAYS[1], 2)])
    aged(folder(table))
    assert swept(table).orphans.keys() == orphan | set(map(stored, late.paths))

    def roots(retention: Retention) -> Any:
        looks.append(len(table.document()["snapshots"]))
        if looks == [1, 1]:
            iceberg_java.commit(table, late, kind="append")
        return ours.roots(retention)

    looks: list[int] = []
    ours = opened(table).retention
    found = swept(table, SweepMode.DELETE, of=replace(ours, roots=roots))
    assert found.orphans.keys() == orphan and found.swept.acted.files == 1
    assert len(iceberg_java.read(table).rows) == 2 == len(table.document()["snapshots"])


def test_files_of_a_writer_at_work_are_young(table: Table, iceberg_java: IcebergJava) -> None:
    iceberg_java.create(table, COLUMNS)
    iceberg_java.append(table, [row(DAYS[0], 1)])
    aged(folder(table))
    writing = iceberg_java.rows(table, [row(DAYS[1], 2)])
    assert not swept(table, SweepMode.DELETE).orphans
    iceberg_java.commit(table, writing, kind="append")
    assert len(iceberg_java.read(table).rows) == 2


@pytest.mark.parametrize("version", [2, 3])
def test_all_that_a_killed_run_of_ours_left_is_found(version: int, table: Table, iceberg_java: IcebergJava) -> None:
    """Also the metadata file between its writing and the catalog's change, which has no name of ours."""
    changed(iceberg_java, table, version=version)
    kept, shown, fuse = Kept.of(table), iceberg_java.read(table), Fuse()
    with breaking(fuse):
        assert care_for(kept.put_back(), run_id="clean").outcome is Outcome.VERIFIED
    swap = next(n for n, point in enumerate(fuse.passed, 1) if point.step == SWAP)
    kinds = set[str]()
    for at in (4, swap, swap + 1):
        before = listed(kept.put_back())
        with child(care_and_die, table, "dies", at) as process:
            assert process.end() == -signal.SIGKILL
        left, needed = listed(table) - before, needed_by(table)
        aged(folder(table))
        by_run = swept(table, of_run="dies").orphans
        found = swept(table, SweepMode.DELETE).orphans
        assert found.keys() == left - needed
        assert by_run.keys() == {name for name in found if token("dies") in name}
        assert listed(table) == before | needed and needed & left == (left - found.keys())
        assert iceberg_java.read(table) == shown
        kinds |= {*found.values()}
    assert kinds == {"vectors" if version == 3 else "deletes", "manifest", "manifest-list", "staged", "metadata"}


# What is left after an expiry


@pytest.fixture
def readers(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, table: Table) -> Readers:
    iceberg_spark.attach(table.warehouse)
    return Readers(iceberg_java, iceberg_spark, lakes, table)


@pytest.mark.parametrize("version", [2, 3])
def test_every_version_that_stays_is_read_as_before(version: int, readers: Readers) -> None:
    java, table = readers.java, readers.table
    changed(java, table, version=version)
    first = table.document()["snapshots"][0]["snapshot-id"]
    java.refs(table, {"change": "create_tag", "name": "v1", "snapshot": first})
    java.statistics(table)
    assert care_for(table, run_id="night").outcome is Outcome.VERIFIED
    java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": table.document()["current-snapshot-id"]})
    java.append(table, [row(DAYS[2], 77)], branch="dev")
    java.commit_rewrite(table, java.begin_rewrite(table, options={"rewrite-all": "true"}))
    versions, before = every_version(java, table), listed(table)
    done = expired(table, retain_last=2)
    assert done.outcome is Outcome.VERIFIED and done.acted.gone.files > 3
    after = every_version(java, table)
    assert after.items() <= versions.items() and {first} < after.keys() < versions.keys()
    assert before - listed(table) and needed_by(table) <= listed(table)
    for number, rows in after.items():
        assert readers.spark.read(table, snapshot=number) == rows
        if number != first or version == 3:
            assert pyiceberg_read(table.metadata, snapshot=number) == rows
    assert readers.spark.read(table, ref="v1") == after[first] and readers.spark.read(table, ref="dev")
    shown = readers.all_see(lineage=version == 3)

    # And engines go on.
    java.cdc(table, [("+U", row(DAYS[0], 35, "later"))], keys=["id", "day"])
    readers.spark.sql(
        f"INSERT INTO {table.sql} VALUES (8000, '{DAYS[1]}', 1.0, 'spark')",
        f"CALL {table.warehouse.name}.system.rewrite_data_files(table => '{table.name}')",
        f"CALL {table.warehouse.name}.system.expire_snapshots(table => '{table.name}', retain_last => 1,"
        " older_than => TIMESTAMP '2999-01-01 00:00:00')",
    )
    # DuckDB 1.5.5 fails on these deletes by key, a text among it, inside of its own code.
    assert len(readers.all_see(duckdb=False).rows) == len(shown.rows) + 1
    assert care_for(table, run_id="next", full=True).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    aged(folder(table))
    orphans = swept(table).orphans
    assert orphans.keys() == spark_orphans(readers.spark, table)


def test_a_killed_expiry_leaves_what_a_sweep_finds(table: Table, iceberg_java: IcebergJava) -> None:
    """As iceberg-spark's own, whose leftovers nobody else finds (Iceberg #7937)."""
    changed(iceberg_java, table, version=2)
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}))
    shown, ours = iceberg_java.read(table), opened(table)
    old(table, days=6)
    expiry = ours.retention.expiry(ExpireRequest(now_ms()))
    assert expiry.forget(Run("expiry", "0" * 16, "a", 0))
    aged(folder(table))
    # What the rewrite removed is younger than a sweep asks for: queries may have begun before it.
    assert {*swept(table).orphans.values()} == {"manifest", "manifest-list"}
    found = swept(table, SweepMode.DELETE, older_than_ms=5 * DAY_MS).orphans
    assert {*found.values()} == {"data", "manifest", "manifest-list"}
    assert iceberg_java.read(table) == shown
    assert listed(table) >= needed_by(table)


def test_a_quarantine_is_hidden_from_engines(table: Table, iceberg_java: IcebergJava, iceberg_spark: Any) -> None:
    iceberg_java.create(table, COLUMNS, Layout(PER_DAY))
    iceberg_java.append(table, [row(DAYS[0], 1)])
    orphan = planted(table, f"data/00000-0-{UUID}-00001.parquet")
    assert swept(table, SweepMode.QUARANTINE).swept.acted.files == 1
    aside = listed(table)
    assert not orphan & aside and any("/_nightkeep/quarantine/" in name for name in aside)
    aged(folder(table))
    assert spark_orphans(iceberg_spark, table, dry_run=False) == frozenset() == frozenset(swept(table).orphans)
    assert listed(table) == aside
