"""A table whose location was set anew: what was quarantined before is where it was, and comes back there."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update import SetLocationUpdate
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg.runs import configured
from tests.formats.iceberg.sweeping import UUID, aged

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.errors import UsageError
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, load
from nightkeep.records import RunDocument, document_path
from nightkeep.spark.engine import Engine

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    made = Warehouse("lake", tmp_path / "lake")
    made.folder.mkdir()
    with configured(made):
        yield made


def test_what_was_quarantined_before_a_table_moved_comes_back(warehouse: Warehouse, tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{warehouse.database}", warehouse=warehouse.location)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, f"{warehouse.location}/db/t")
    table.append(pa.table({"id": [1]}, SCHEMA))
    orphan = warehouse.folder / f"db/t/data/00000-0-{UUID}-00001.parquet"
    orphan.write_bytes(b"an orphan")
    aged(warehouse.folder / "db/t")
    policy, reports = load("none.yaml", text="version: 1").effective("iceberg:lake/db.t"), tmp_path / "reports"
    assert _ran(policy, reports, Operation.SWEEP, SweepMode.QUARANTINE).outcome is Outcome.VERIFIED
    assert not orphan.exists()
    with table.transaction() as transaction:
        transaction._apply((SetLocationUpdate(location=f"{warehouse.location}/new/t"),))
    document = Path(document_path(reports, "iceberg:lake/db.t", run_id="r", operation=Operation.SWEEP))
    aside, text = document.with_suffix(".aside"), document.read_text()
    document.rename(aside)
    with pytest.raises(UsageError, match="nothing of run r is in quarantine"):
        _ran(policy, reports, Operation.RESTORE, None)
    document.write_text("{")
    with pytest.raises(UsageError, match="nothing of run r is in quarantine"):
        _ran(policy, reports, Operation.RESTORE, None)
    document.write_text(text)
    back = _ran(policy, reports, Operation.RESTORE, None)
    assert (back.outcome, back.extra["acted"]) == (Outcome.VERIFIED, {"files": 1, "bytes": 9})
    assert orphan.read_bytes() == b"an orphan"


def _ran(policy: EffectivePolicy, reports: Path, operation: Operation, mode: SweepMode | None) -> RunDocument:
    order = Order(operation, "r", str(reports), removal=RemovalOptions(mode=mode), checks=False)
    return run_one(policy, order, Engine(master="none", task_memory_bytes=1 << 30)).document
