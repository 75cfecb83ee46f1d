"""Statistics of an Iceberg table after our commits, as Spark's optimizer and Java read them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import configure
from tests.formats.iceberg.runs import care_for, opened
from tests.formats.iceberg.sweeping import now_ms, old

from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets

IDS, KINDS = 80, 5


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Eight small files with a column of five values, and statistics that Java computed."""
    configure(monkeypatch, iceberg)
    table = iceberg.table()
    iceberg_java.create(table, [("id", "long"), ("kind", "long")], Layout())
    for start in range(0, IDS, 10):
        iceberg_java.append(table, [[number, number % KINDS] for number in range(start, start + 10)])
    return table


def analyze(spark: IcebergSpark, table: Table) -> None:
    spark.attach(table.warehouse)
    spark.sql(f"CALL {table.warehouse.name}.system.compute_table_stats(table => '{table.name}')")


def expected(spark: IcebergSpark, table: Table) -> list[list[Any]]:
    """Distinct values that Spark's optimizer expects of the columns of both sides of a join."""
    spark.attach(table.warehouse)
    with spark.configured({"spark.sql.cbo.enabled": "true"}):
        return spark.planned(f"SELECT * FROM {table.sql} a JOIN {table.sql} b ON a.kind = b.kind")


def test_the_optimizer_expects_the_same_after_a_compaction(iceberg_spark: IcebergSpark, table: Table) -> None:
    assert expected(iceberg_spark, table) == []
    analyze(iceberg_spark, table)
    before = expected(iceberg_spark, table)
    assert before == [["id", IDS], ["id", IDS], ["kind", KINDS], ["kind", KINDS]]
    done = care_for(table, operation=Operation.OPTIMIZE)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert expected(iceberg_spark, table) == before


def test_a_commit_of_another_in_between_ends_statistics(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    analyze(iceberg_spark, table)
    iceberg_java.append(table, [[100, 9]])
    assert care_for(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    assert expected(iceberg_spark, table) == []
    current = table.document()["current-snapshot-id"]
    assert current not in {each["snapshot-id"] for each in table.document()["statistics"]}


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
def test_statistics_outlive_the_snapshot_that_they_were_computed_from(
    version: int, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, table: Table
) -> None:
    """Deletes are stored in another form, files packed, and old snapshots expired, by us and by Java."""
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": str(version)}})
    iceberg_java.cdc(table, [("-D", [3, 3])], keys=("id",))
    analyze(iceberg_spark, table)
    before, shown = expected(iceberg_spark, table), iceberg_java.read(table)
    assert care_for(table, run_id="deletes", operation=Operation.PERSIST_DELETES).outcome is Outcome.VERIFIED
    assert care_for(table, run_id="files", operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    assert expected(iceberg_spark, table) == before
    (path,) = {each["statistics-path"] for each in table.document()["statistics"]}
    old(table)
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms(), retain_last=2), Retention(now_ms(), 0))
    run = Run("expiry", "0" * 16, "a", now_ms())
    done = expire_versions(opened(table).retention, order, run, sets=MemorySets, before=lambda _: None)
    assert done.outcome is Outcome.VERIFIED, done
    assert len(table.document()["snapshots"]) == 2
    iceberg_spark.sql(
        f"CALL {table.warehouse.name}.system.expire_snapshots(table => '{table.name}', retain_last => 1,"
        " older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    assert len(table.document()["snapshots"]) == 1
    (kept,) = table.document()["statistics"]
    assert (kept["statistics-path"], kept["snapshot-id"]) == (path, table.document()["current-snapshot-id"])
    assert expected(iceberg_spark, table) == before
    assert iceberg_java.read(table) == shown
