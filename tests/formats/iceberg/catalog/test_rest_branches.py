"""Runs over a REST catalog on a branch and on main, of every format version: the server sets the one reference."""

from collections import Counter
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import COLUMNS, DAYS, configured, row

from nightkeep.admission.order import Order
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline


def night(table: Table, mark: str) -> RunDocument:
    location = f"{table.warehouse.name}/{table.name}{mark}"
    policy = EffectivePolicy(Address("iceberg", location, location), Settings(), {})
    order = Order(Operation.OPTIMIZE, f"night{mark}", str(table.warehouse.folder / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_branch_and_main_over_rest(
    iceberg_java: IcebergJava,
    iceberg_rest: IcebergRest,
    iceberg: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    table = iceberg.table()
    with configured(iceberg):
        iceberg_java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version))
        for start in (0, 100):
            iceberg_java.append(table, [row(DAYS[0], number) for number in range(start, start + 20)])
        first = table.document()["current-snapshot-id"]
        iceberg_java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": first})
        prefix = f"PYICEBERG_CATALOG__{iceberg.name.upper()}"
        monkeypatch.delenv(f"{prefix}__WAREHOUSE")
        monkeypatch.setenv(f"{prefix}__TYPE", "rest")
        monkeypatch.setenv(f"{prefix}__URI", iceberg_rest.serve(iceberg))
        before = shown(iceberg_java, table)
        for mark, ref in (("$branch_dev", "dev"), ("", "main")):
            others = {name: ref for name, ref in refs(table).items() if name != ref}
            done = night(table, mark)
            assert done.outcome is Outcome.VERIFIED, done.reason
            assert refs(table)[ref] == done.committed_version
            assert {name: at for name, at in refs(table).items() if name != ref} == {
                name: at for name, at in others.items() if name != ref
            }
            assert shown(iceberg_java, table, ref) == before
        assert table.document()["format-version"] == version


def refs(table: Table) -> dict[str, int]:
    return {name: ref["snapshot-id"] for name, ref in table.document()["refs"].items()}


def shown(java: IcebergJava, table: Table, ref: str | None = None) -> Counter[Any]:
    return Counter(map(tuple, java.read(table, ref=ref).rows))
