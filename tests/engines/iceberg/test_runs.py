"""Runs from policy to document, where Iceberg differs from the other formats."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import address_of, configure, loaded

from nightkeep.admission.order import Order
from nightkeep.model import Operation, Outcome
from nightkeep.policy import load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline, inline_exchange

pytestmark = pytest.mark.in_turn("version")


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Table:
    configure(monkeypatch, iceberg)
    return iceberg.table()


def cared(table: Table, folder: Path, run_id: str, *, where: str) -> RunDocument:
    policy = load("tables.yaml", text="version: 1").effective(str(address_of(table)))
    policy = replace(policy, settings=policy.settings.model_copy(update={"where": where}))
    order = Order(Operation.PERSIST_DELETES, run_id, str(folder))
    return run_operation(policy, order, mapper=lambda: inline, exchange=lambda: inline_exchange)


def test_a_filter_keeps_deletes_of_everything_and_commits_once(
    iceberg_java: IcebergJava, table: Table, tmp_path: Path
) -> None:
    """A global equality delete goes with the last partition; until then the same filter changes nothing again."""
    iceberg_java.create(table, [("id", "long"), ("day", "date")], Layout((("day", "identity"),)))
    iceberg_java.append(table, [[1, "2026-11-01"], [2, "2026-11-02"]])
    iceberg_java.alter(table, {"change": "remove_partition_field", "name": "day"})
    deletes = iceberg_java.equality_deletes(table, [[1], [2]], keys=("id",))
    iceberg_java.commit(table, deletes)

    first = cared(table, tmp_path, "first", where="day = '2026-11-01'")
    again = cared(table, tmp_path, "again", where="day = '2026-11-01'")

    assert (first.outcome, again.outcome) == (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert loaded(table).version == first.committed_version
    assert any(unit.equality for unit in loaded(table).units)
    assert cared(table, tmp_path, "rest", where="day >= '2026-11-01'").outcome is Outcome.VERIFIED
    assert not any(unit.equality for unit in loaded(table).units)
    assert iceberg_java.read(table).rows == ()


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_table_without_data_go(
    iceberg_java: IcebergJava, table: Table, tmp_path: Path, version: int
) -> None:
    """What took the last data file left equality deletes, which hold for the whole table and for nothing in it."""
    iceberg_java.create(table, [("id", "long", True), ("text", "string")], Layout(format_version=version))
    iceberg_java.append(table, [[1, "a"], [2, "b"]])
    iceberg_java.cdc(table, [("+U", [1, "c"])], keys=("id",))
    data = [file.path for unit in loaded(table).units for file in unit.files]
    iceberg_java.commit(table, kind="overwrite", remove=data)

    policy = load("tables.yaml", text="version: 1").effective(str(address_of(table)))
    order = Order(Operation.PERSIST_DELETES, "run", str(tmp_path))
    done = run_operation(policy, order, mapper=lambda: inline, exchange=lambda: inline_exchange)

    assert done.outcome is Outcome.VERIFIED, done.reason
    assert not any(unit.equality for unit in loaded(table).units)
    assert iceberg_java.read(table).rows == ()
