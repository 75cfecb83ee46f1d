"""Files that move to the current partition spec: Spark shows the same rows and ids, and our check finds nothing."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import runs
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.sabotage import Staged

from nightkeep.checking.check import check
from nightkeep.checking.diff import diff
from nightkeep.model import Operation, Outcome, Request
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("version")]

VERSIONS = pytest.mark.parametrize("version", [2, 3])
COLUMNS: tuple[Column, ...] = (("id", "long"), ("day", "date"), ("note", "string"))
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def grid(first: int, last: int) -> list[list[Any]]:
    return [[n, f"2026-11-{n % 3 + 1:02d}", f"note {n}"] for n in range(first, last)]


def evolved(java: IcebergJava, warehouse: Warehouse, version: int) -> Table:
    """Days with deletes of every kind, then buckets of ids within them; rows of both specs."""
    table = warehouse.table()
    java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version))
    for first in range(0, 120, 40):
        java.append(table, grid(first, first + 40))
    java.cdc(table, [("-D", row) for row in grid(10, 20)], keys=["id", "day"])
    paths = sorted(each["file_path"] for each in java.entries(table) if each["content"] == 0)
    write = java.vectors if version == 3 else java.position_deletes
    java.commit(table, write(table, [(path, n) for path in paths[:3] for n in (1, 2)]))
    java.alter(table, {"change": "add_partition_field", "column": "id", "transform": "bucket[4]", "name": "by_id"})
    java.append(table, grid(200, 230))
    return table


def shown(java: IcebergJava, table: Table, version: int) -> Counter[Any]:
    names = [*(column[0] for column in COLUMNS), *(LINEAGE if version == 3 else ())]
    return Counter(map(tuple, java.read(table, columns=names).rows))


@VERSIONS
def test_java_shows_the_same_rows_and_the_check_passes(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, version: int
) -> None:
    table = evolved(iceberg_java, warehouse, version)
    before = shown(iceberg_java, table, version)
    done = runs.care_for(table, run_id="moves", operation=Operation.OPTIMIZE, respec=True)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_java, table, version) == before
    live = [each for each in iceberg_java.entries(table) if each["status"] != 2]
    assert {each["spec_id"] for each in live if each["content"] == 0} == {1}
    assert not [each for each in live if each["content"] != 0]
    report = check(CheckRequest(address_of(table), version=done.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report


@VERSIONS
def test_the_check_alone_finds_a_row_that_is_lost(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, version: int
) -> None:
    """With the gate switched off."""
    table = evolved(iceberg_java, warehouse, version)
    ours, run = runs.opened(table), a_run()
    found = plan(ours, ours.snapshot(), Request(Operation.OPTIMIZE, run.now_ms, respec=True))
    candidate = ours.commits.stage(ours.snapshot(), list(execute(ours, found, run, mapper=inline)), run)
    unit = next(unit for unit in ours.staged(candidate).units if unit.spec_id == 1 and unit.moved == () and unit.files)
    Staged(ours, candidate, unit.key).rewrite(lambda held: held.slice(1))
    assert ours.commits.commit(candidate)
    report = check(CheckRequest(address_of(table)), spark=spark)
    assert report.status is CheckStatus.FAILED, report


# Races with Java


def executed(table: Table) -> tuple[Any, Any, Any, Any]:
    ours, run = runs.opened(table), a_run()
    planned = ours.snapshot()
    found = plan(ours, planned, Request(Operation.OPTIMIZE, run.now_ms, respec=True))
    return ours, planned, list(execute(ours, found, run, mapper=inline)), run


@VERSIONS
def test_an_upsert_of_java_meanwhile_is_a_conflict(
    iceberg_java: IcebergJava, warehouse: Warehouse, version: int
) -> None:
    """Its deletes are of partitions of the current spec: they would hide rows there that they do not hide now."""
    table = evolved(iceberg_java, warehouse, version)
    ours, planned, rewrites, _ = executed(table)
    iceberg_java.append(table, grid(300, 310))
    assert ours.commits.conflicts(planned, ours.snapshot(), rewrites) == ()
    iceberg_java.cdc(table, [("+U", row) for row in grid(30, 60)], keys=["id", "day"])
    lost = ours.commits.conflicts(planned, ours.snapshot(), rewrites)
    assert {key for key, _ in lost} == {rewrite.key for rewrite in rewrites}
    assert all("newer equality deletes" in reason for _, reason in lost)


@VERSIONS
def test_global_deletes_meanwhile_hold_for_rows_that_moved(
    iceberg_java: IcebergJava, warehouse: Warehouse, version: int
) -> None:
    table = evolved(iceberg_java, warehouse, version)
    for name in ("day", "by_id"):
        iceberg_java.alter(table, {"change": "remove_partition_field", "name": name})
    ours, planned, rewrites, run = executed(table)
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [[n] for n in range(40, 50)], keys=("id",)))
    head = ours.snapshot()
    assert ours.commits.conflicts(planned, head, rewrites) == ()
    before = shown(iceberg_java, table, version)
    assert ours.commits.commit(ours.commits.stage(head, rewrites, run))
    assert shown(iceberg_java, table, version) == before


@VERSIONS
def test_a_compaction_of_java_that_began_before_fails(
    iceberg_java: IcebergJava, warehouse: Warehouse, version: int
) -> None:
    table = evolved(iceberg_java, warehouse, version)
    begun = iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"})
    before = shown(iceberg_java, table, version)
    assert runs.care_for(table, operation=Operation.OPTIMIZE, respec=True).outcome is Outcome.VERIFIED
    with pytest.raises(EngineError):
        iceberg_java.commit_rewrite(table, begun)
    assert shown(iceberg_java, table, version) == before


@VERSIONS
def test_a_compaction_of_java_meanwhile_is_a_conflict(
    iceberg_java: IcebergJava, warehouse: Warehouse, version: int
) -> None:
    table = evolved(iceberg_java, warehouse, version)
    ours, planned, rewrites, _ = executed(table)
    iceberg_java.commit_rewrite(table, iceberg_java.begin_rewrite(table, options={"rewrite-all": "true"}))
    lost = ours.commits.conflicts(planned, ours.snapshot(), rewrites)
    assert {key for key, _ in lost} == {rewrite.key for rewrite in rewrites}


@VERSIONS
def test_versions_before_and_after_a_move_are_equal(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, version: int
) -> None:
    table = evolved(iceberg_java, warehouse, version)
    done = runs.care_for(table, run_id="moves", operation=Operation.OPTIMIZE, respec=True)
    assert done.outcome is Outcome.VERIFIED and done.committed_version is not None and done.base_version is not None
    runs.care_for(table, run_id="packs", operation=Operation.OPTIMIZE, respec=True)
    ends = [done.base_version, runs.opened(table).snapshot().version]
    for first, second in (ends, ends[::-1]):
        found = diff(address_of(table), first, second, spark=spark)
        assert found.equal, found
    assert runs.opened(table).snapshot(done.committed_version).summary["nightkeep.respec"] == "1"
