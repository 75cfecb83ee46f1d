"""Tables with columns whose values we do not compare: planned, swept and expired, for which no row of them is read."""

from collections.abc import Iterator

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.engines.iceberg.test_first_version import planned
from tests.formats.iceberg.runs import COLUMNS, DAYS, care_for, configured, contents, folder, opened, row
from tests.formats.iceberg.sweeping import UUID, aged, listed, needed_by, now_ms, old, planted, swept

from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets

KINDS = ("geometry", "geography")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(kind: str, iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Table]:
    """Two days in two small files each, one of them with upserts, and a column that Java added of such a type."""
    with configured(iceberg):
        table = iceberg.table()
        iceberg_java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=3))
        for start in (0, 100):
            iceberg_java.append(table, [row(day, number) for day in DAYS[:2] for number in range(start, start + 40)])
        iceberg_java.cdc(table, [("+U", row(DAYS[0], 5, "updated"))], keys=["id", "day"])
        iceberg_java.alter(table, {"change": "add_column", "name": "odd", "type": kind})
        yield table


@pytest.mark.few(1)
def test_a_plan_states_what_a_run_would_do(table: Table, kind: str) -> None:
    before = contents(table)
    for operation, units in ((Operation.OPTIMIZE, 2), (Operation.PERSIST_DELETES, 1)):
        found = planned(table, operation)
        assert found.plan is not None
        assert (found.outcome, len(found.plan.units)) == (Outcome.SKIPPED, units)
        assert any(f"a run would be refused: type {kind}: column odd" in note for note in found.plan.notes)
    assert contents(table) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("operation", [Operation.OPTIMIZE, Operation.PERSIST_DELETES])
def test_what_needs_rows_is_refused_by_name(table: Table, kind: str, operation: Operation) -> None:
    before = contents(table)
    found = care_for(table, operation=operation)
    assert found.outcome is Outcome.REFUSED and f"type {kind}: column odd is of type {kind}" in str(found.reason)
    with pytest.raises(RefusedTable, match=f"type {kind}"):
        opened(table).snapshot()
    assert contents(table) == before


@pytest.mark.few(1)
def test_a_sweep_deletes_what_nothing_needs(table: Table) -> None:
    needed = needed_by(table)
    left = planted(table, f"data/day={DAYS[0]}/00000-0-{UUID}-00001.parquet", f"metadata/{UUID}-m0.avro")
    aged(folder(table))
    found = swept(table, SweepMode.DELETE)
    assert (found.swept.outcome, frozenset(found.orphans)) == (Outcome.VERIFIED, left)
    assert needed <= listed(table) and not left & listed(table)


@pytest.mark.few(1)
def test_an_expiry_lets_versions_and_their_files_go(table: Table) -> None:
    old(table)
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms()), Retention(now_ms(), 0))
    run = Run("expiry", "0" * 16, "a", now_ms())
    before = listed(table)
    done = expire_versions(opened(table).retention, order, run, sets=MemorySets, before=lambda _: None)
    assert (done.outcome, len(done.expiry.roots)) == (Outcome.VERIFIED, 2)
    assert len(table.document()["snapshots"]) == 1
    assert needed_by(table) <= listed(table) < before | {str(table.metadata)[1:]}
