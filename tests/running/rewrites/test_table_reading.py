"""Plans of several operations of one table are of one version, which is read once."""

from pathlib import Path

import pytest
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.protocol import OpenTable
from nightkeep.records import RunDocument
from nightkeep.running.rewrites import table_reading
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.running.rewrites.table_reading import OneVersion, TableReader, read_table
from nightkeep.tasks import inline


@pytest.fixture
def engine(tmp_path: Path) -> MemoryEngine:
    found = MemoryEngine(str(tmp_path))
    found.append("2026-11-01", range(50))
    found.append("2026-11-01", range(50, 90))
    return found


def planned(engine: MemoryEngine, reader: TableReader) -> RunDocument:
    policy = EffectivePolicy(engine.address, Settings(), {})
    order = Order(Operation.OPTIMIZE, "plan", str(Path(engine.address.location) / "reports"), dry_run=True)
    return run_operation(policy, order, mapper=lambda: inline, reader=reader)


def test_a_version_that_appears_between_two_plans_is_in_neither(
    engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def counted(address: Address) -> OpenTable:
        opened.append(address)
        return open_table(address)

    monkeypatch.setattr(table_reading, "open_table", counted)
    reader = OneVersion()
    first = planned(engine, reader)
    engine.append("2026-11-02", range(50))
    second = planned(engine, reader)
    assert len(opened) == 1
    anew = planned(engine, read_table)
    assert first.outcome is second.outcome
    assert first.base_version is not None and first.base_version == second.base_version
    assert anew.base_version == first.base_version + 1
    assert [unit.partition for unit in second.units] == [unit.partition for unit in first.units]
