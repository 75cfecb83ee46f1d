"""Tables of format version 1: planned, and swept in a dry run; all that would write or delete is refused by name."""

from collections.abc import Iterator

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import COLUMNS, DAYS, address, care_for, configured, contents, folder, opened, row
from tests.formats.iceberg.sweeping import UUID, aged, listed, needed_by, now_ms, planted, swept

from nightkeep.admission.order import Order
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.records import RunDocument
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

PARTITIONS = tuple(f"day={day}" for day in DAYS[:2])
NAMED = "format version 1: the table is of version 1"


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


def test_a_plan_states_what_a_run_would_do_after_the_upgrade(table: Table, iceberg_java: IcebergJava) -> None:
    before = contents(table)
    found = planned(table, Operation.OPTIMIZE)
    assert (found.outcome, contents(table)) == (Outcome.SKIPPED, before)
    assert found.plan is not None
    assert {unit.partition: len(unit.input_files) for unit in found.plan.units} == dict.fromkeys(PARTITIONS, 3)
    assert any(f"a run would be refused: {NAMED}" in note for note in found.plan.notes)
    iceberg_java.alter(table, {"change": "set_properties", "properties": {"format-version": "2"}})
    after = planned(table, Operation.OPTIMIZE)
    assert after.plan is not None
    assert after.plan.units == found.plan.units
    assert not any("would be refused" in note for note in after.plan.notes)


def test_a_table_without_work_states_that_it_would_be_refused(table: Table) -> None:
    found = planned(table, Operation.PERSIST_DELETES)
    assert found.outcome is Outcome.UNCHANGED
    assert f"a run would be refused: {NAMED}" in str(found.reason)


@pytest.mark.parametrize("operation", [Operation.OPTIMIZE, Operation.PERSIST_DELETES])
def test_a_run_is_refused(table: Table, operation: Operation) -> None:
    before = contents(table)
    found = care_for(table, operation=operation)
    assert found.outcome is Outcome.REFUSED
    assert NAMED in str(found.reason) and "'format-version'='2'" in str(found.reason)
    assert contents(table) == before


def test_a_dry_sweep_finds_what_nothing_needs(table: Table) -> None:
    left = planted(
        table,
        f"data/day={DAYS[0]}/00000-0-{UUID}-00001.parquet",
        f"metadata/{UUID}-m0.avro",
        f"metadata/snap-17-1-{UUID}.avro",
    )
    aged(folder(table))
    found = swept(table)
    assert found.swept.outcome is Outcome.SKIPPED
    assert frozenset(found.orphans) == left
    assert needed_by(table) <= listed(table) - left


@pytest.mark.parametrize("mode", [SweepMode.QUARANTINE, SweepMode.DELETE])
def test_what_removes_files_is_refused(table: Table, mode: SweepMode) -> None:
    planted(table, f"data/day={DAYS[0]}/00000-0-{UUID}-00001.parquet")
    before = contents(table)
    with pytest.raises(RefusedTable, match=NAMED):
        swept(table, mode)
    with pytest.raises(RefusedTable, match=NAMED):
        restore(opened(table).retention.table_files(), "weekly", now_ms=now_ms())
    order = ExpireOrder(mode, ExpireRequest(now_ms(), older_than_ms=0), Retention(now_ms(), 0))
    with pytest.raises(RefusedTable, match=NAMED):
        expire_versions(
            opened(table).retention,
            order,
            Run("expiry", "0" * 16, "a", now_ms()),
            sets=MemorySets,
            before=lambda _: None,
        )
    assert contents(table) == before
    assert not (folder(table) / "_nightkeep").exists()
