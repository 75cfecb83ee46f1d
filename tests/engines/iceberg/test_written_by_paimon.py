"""Iceberg metadata that Paimon Java writes of its own tables, in a catalog: the files are Paimon's, and stay so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.iceberg.runs import configured

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.catalog.catalog import open_handle
from nightkeep.formats.iceberg.format import open_table
from nightkeep.formats.iceberg.retention.expire import expiry
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode
from nightkeep.formats.iceberg.upsert.sink import target_of
from nightkeep.model import Address, Operation, Request
from nightkeep.policy.address import parse_address
from nightkeep.protocol.table_files import ExpireRequest
from nightkeep.stages.plan import plan

pytestmark = pytest.mark.slow
OF_PAIMON = "schema/schema-0 in its folder is the metadata of a table of Paimon's"


@pytest.fixture(params=["table-location", "hadoop-catalog"])
def address(request: pytest.FixtureRequest, paimon_java: PaimonJava, tmp_path: Path) -> Iterator[Address]:
    """A table of Paimon's that a catalog of Iceberg's has too."""
    of_paimon = tmp_path / "paimon/db.db/t"
    options = {"bucket": "1", "metadata.iceberg.storage": request.param, "full-compaction.delta-commits": "1"}
    columns = [("k", "INT NOT NULL"), ("v", "STRING")]
    paimon_java.create(of_paimon, Layout(columns=columns, primary_keys=["k"], options=options))
    paimon_java.write(of_paimon, [["+I", 1, "a"], ["+I", 2, "b"]], Writer(user="writer", identifier=1))
    paimon_java.compact(of_paimon, Compaction(full=True, user="compactor"))
    (metadata,) = (tmp_path / "paimon").rglob("*.metadata.json")
    lake = Warehouse("lake", tmp_path / "lake")
    lake.folder.mkdir()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake.database}", warehouse=lake.location)
    catalog.create_namespace("db")
    catalog.register_table("db.t", str(metadata))
    with configured(lake):
        yield parse_address("iceberg:lake/db.t", "/")


def test_nothing_is_rewritten_expired_or_written(address: Address) -> None:
    table, handle = open_table(address), open_handle(address.location)
    snapshot = table.snapshot()
    for operation in table.operations:
        with pytest.raises(RefusedTable, match=OF_PAIMON):
            plan(table, snapshot, Request(operation, 0))
    with pytest.raises(RefusedTable, match=OF_PAIMON):
        expiry(address.name, handle, ExpireRequest(now_ms=0))
    with pytest.raises(RefusedTable, match=OF_PAIMON):
        target_of(handle, snapshot, ChangeBatch("b", ("changes.jsonl",), ChangeMode.APPEND))
    assert set(table.operations) == {Operation.OPTIMIZE, Operation.PERSIST_DELETES}
