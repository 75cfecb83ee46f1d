"""Tables of format version 1: packed, clustered, sorted, swept, expired, never upgraded. Java goes on from there."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.laid_anew import a_run
from tests.formats.iceberg.optimized_lake import by
from tests.formats.iceberg.runs import COLUMNS, DAYS, address, care_for, configured, contents, folder, opened, row
from tests.formats.iceberg.sweeping import UUID, aged, listed, needed_by, now_ms, planted, swept

from nightkeep.admission.order import Order
from nightkeep.checking.check import check
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT
from nightkeep.model import Operation, Outcome, Request, Run
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

PARTITIONS = tuple(f"day={day}" for day in DAYS[:2])


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Table]:
    """Two days in three small files each."""
    with configured(iceberg):
        table = iceberg.table()
        iceberg_java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=1))
        for start in (0, 100, 200):
            iceberg_java.append(table, [row(day, number) for day in DAYS[:2] for number in range(start, start + 40)])
        assert table.document()["format-version"] == 1
        yield table


def planned(table: Table, operation: Operation, **settings: object) -> RunDocument:
    policy = EffectivePolicy(address(table), Settings().model_copy(update=settings), {})
    order = Order(operation, "night", str(table.warehouse.folder / "reports"), dry_run=True)
    return run_operation(policy, order, mapper=lambda: inline)


def shown(java: IcebergJava, table: Table) -> Counter[Any]:
    return Counter(map(tuple, java.read(table).rows))


def require_first_version(table: Table) -> None:
    document = table.document()
    assert document["format-version"] == 1
    assert "last-sequence-number" not in document
    assert not any("sequence-number" in each for each in document["snapshots"])
    assert {"schema", "partition-spec"} <= document.keys()


@pytest.mark.parametrize("clustering", [None, by("price", "note")])
def test_files_are_packed_and_clustered(
    table: Table, iceberg_java: IcebergJava, spark: SparkSession, clustering: Any
) -> None:
    before = shown(iceberg_java, table)
    done = care_for(table, operation=Operation.OPTIMIZE, clustering=clustering)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_java, table) == before
    live = [each for each in iceberg_java.entries(table) if each["status"] != 2]
    assert len(live) == 2
    require_first_version(table)
    assert check(CheckRequest(address_of(table)), spark=spark).status is CheckStatus.PASSED
    # Java appends to it, and replaces what we wrote.
    iceberg_java.append(table, [row(DAYS[0], number) for number in range(300, 310)])
    again = care_for(table, run_id="next", operation=Operation.OPTIMIZE, clustering=clustering)
    assert again.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert shown(iceberg_java, table) == before + Counter(tuple(row(DAYS[0], number)) for number in range(300, 310))
    last = care_for(table, run_id="last", operation=Operation.OPTIMIZE, clustering=clustering)
    assert last.outcome is Outcome.UNCHANGED
    require_first_version(table)


def test_java_sorts_by_an_order_of_its_own_and_so_do_we(table: Table, iceberg_java: IcebergJava) -> None:
    iceberg_java.alter(table, {"change": "sort", "columns": ["price"]})
    before = shown(iceberg_java, table)
    assert care_for(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    live = [each for each in iceberg_java.entries(table) if each["status"] != 2]
    assert {each["sort_order_id"] for each in live} == {1}
    assert shown(iceberg_java, table) == before


def test_partition_fields_that_were_removed_stay_void(table: Table, iceberg_java: IcebergJava) -> None:
    iceberg_java.alter(table, {"change": "remove_partition_field", "name": "day"})
    iceberg_java.append(table, [row(DAYS[0], number) for number in range(400, 410)])
    before = shown(iceberg_java, table)
    assert care_for(table, operation=Operation.OPTIMIZE, respec=True).outcome is Outcome.VERIFIED
    live = [each for each in iceberg_java.entries(table) if each["status"] != 2]
    assert {each["spec_id"] for each in live} == {1}
    assert shown(iceberg_java, table) == before
    require_first_version(table)


def test_nothing_has_deletes_to_persist(table: Table) -> None:
    assert care_for(table, operation=Operation.PERSIST_DELETES).outcome is Outcome.UNCHANGED


def test_a_commit_of_another_first_is_a_lost_race(table: Table, iceberg_java: IcebergJava) -> None:
    """An upgrade as well: what was staged for version 1 is staged anew for version 2."""
    ours, run = opened(table), a_run()
    found = plan(ours, ours.snapshot(), Request(Operation.OPTIMIZE, run.now_ms))
    rewrites = list(execute(ours, found, run, mapper=inline))
    first = ours.commits.stage(ours.snapshot(), rewrites, run)
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "2"}})
    assert not ours.commits.commit(first)
    before = shown(iceberg_java, table)
    again = ours.commits.stage(ours.snapshot(), rewrites, run)
    assert not ours.gate.faults(ours.snapshot(), ours.staged(again), again.units)
    assert ours.commits.commit(again)
    assert shown(iceberg_java, table) == before
    assert table.document()["last-sequence-number"] == 1
    iceberg_java.append(table, [row(DAYS[0], 500)])
    late = ours.commits.stage(ours.snapshot(), (), run) if ours.snapshot().version == NO_SNAPSHOT else None
    assert late is None


@pytest.mark.parametrize("mode", [SweepMode.QUARANTINE, SweepMode.DELETE])
def test_what_nothing_needs_goes(table: Table, iceberg_java: IcebergJava, mode: SweepMode) -> None:
    left = planted(
        table,
        f"data/day={DAYS[0]}/00000-0-{UUID}-00001.parquet",
        f"metadata/{UUID}-m0.avro",
        f"metadata/snap-17-1-{UUID}.avro",
    )
    aged(folder(table))
    before = shown(iceberg_java, table)
    found = swept(table, mode)
    assert found.swept.outcome is Outcome.VERIFIED, found.swept
    assert frozenset(found.orphans) == left
    assert needed_by(table) <= listed(table) - left
    assert shown(iceberg_java, table) == before


def test_old_snapshots_expire_with_their_files(table: Table, iceberg_java: IcebergJava) -> None:
    assert care_for(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    before, files = shown(iceberg_java, table), listed(table)
    iceberg_java.refs(table, {"change": "create_tag", "name": "kept", "snapshot": first_snapshot(table)})
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms() + 10**9, older_than_ms=0), Retention(now_ms(), 0))
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"history.expire.max-snapshot-age-ms": "1"}})
    run = Run("expiry", "0" * 16, "a", now_ms())
    expire_versions(opened(table).retention, order, run, sets=MemorySets, before=lambda _: None)
    document = table.document()
    assert len(document["snapshots"]) == 2
    require_first_version(table)
    assert len(listed(table)) < len(files)
    assert shown(iceberg_java, table) == before
    assert len(iceberg_java.read(table, snapshot=first_snapshot(table)).rows) == 80


def first_snapshot(table: Table) -> int:
    number: int = table.document()["snapshots"][0]["snapshot-id"]
    return number


@pytest.mark.parametrize("lost", ["table-uuid", "schemas", "partition-specs"])
def test_metadata_of_the_first_releases_is_refused_by_name(table: Table, lost: str) -> None:
    document = table.document()
    del document[lost]
    table.metadata.write_text(json.dumps(document))
    before = contents(table)
    for operation in (Operation.OPTIMIZE, Operation.PERSIST_DELETES):
        done = care_for(table, run_id=f"{operation}", operation=operation)
        assert done.outcome is Outcome.REFUSED
        assert f"metadata of the first releases: it has no {lost}" in str(done.reason)
    with pytest.raises((RefusedTable, CorruptMetadata), match=r"metadata of the first releases|table-uuid"):
        swept(table, SweepMode.DELETE)
    found = planned(table, Operation.OPTIMIZE)
    assert found.outcome is Outcome.SKIPPED
    assert any("a run would be refused: metadata of the first releases" in note for note in found.plan.notes)
    assert contents(table) == before
