"""Copies of samples, registered in a real metastore as the engines register tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hive_metastore.ttypes import Database, SerDeInfo, StorageDescriptor, Table
from tests.discovery.warehouses import SAMPLES

from nightkeep.admission.order import Order
from nightkeep.api.call_context import find_context
from nightkeep.metastores.hive_connections import MetastoreConnections
from nightkeep.model import Operation
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

DELTA: Final = {"spark.sql.sources.provider": "delta", "EXTERNAL": "TRUE"}
PAIMON: Final = {"table_type": "PAIMON", "storage_handler": "org.apache.paimon.hive.PaimonStorageHandler"}


def copied(folder: Path) -> tuple[Path, Path]:
    """A table of Delta and one of Paimon."""
    places = {"delta/shop.db/clicks": folder / "lake/cl icks", "paimon/shop.db/orders": folder / "wh/shop.db/orders"}
    for sample, place in places.items():
        shutil.copytree(SAMPLES / sample, place)
    delta, paimon = places.values()
    return delta, paimon


@contextmanager
def in_hive(uri: str, tables: Mapping[str, Table]) -> Iterator[None]:
    """The tables by their names in the database `shop`, which are dropped afterwards. No file is."""
    with MetastoreConnections({"uri": uri}) as client:
        client.create_database(Database(name="shop", locationUri="file:/nowhere", parameters={}))
        for table in tables.values():
            client.create_table(table)
    try:
        yield
    finally:
        with MetastoreConnections({"uri": uri}) as client:
            for name in client.get_all_tables("shop"):
                client.drop_table("shop", name, False)
            client.drop_database("shop", False, False)


def hive_table(name: str, location: str, parameters: Mapping[str, str], kind: str = "EXTERNAL_TABLE") -> Table:
    """A table in the database `shop`. One of Delta is placed as Spark places external ones."""
    delta = "spark.sql.sources.provider" in parameters
    serde = SerDeInfo(name="", serializationLib="x.Serde", parameters={"path": location} if delta else {})
    place = f"file:/nowhere/{name}-__PLACEHOLDER__" if delta else location or None
    stored = StorageDescriptor(
        cols=[],
        location=place,
        inputFormat="x.TextInputFormat",
        outputFormat="x.TextOutputFormat",
        serdeInfo=serde,
        parameters={},
        bucketCols=[],
        sortCols=[],
        numBuckets=-1,
    )
    view = {"viewOriginalText": "select 1", "viewExpandedText": "select 1"} if "VIEW" in kind else {}
    return Table(
        tableName=name,
        dbName="shop",
        owner="team",
        createTime=1,
        lastAccessTime=1,
        retention=0,
        sd=stored,
        partitionKeys=[],
        parameters=dict(parameters),
        tableType=kind,
        **view,
    )


def glue_table(name: str, location: str, parameters: Mapping[str, str], kind: str = "EXTERNAL_TABLE") -> dict[str, Any]:
    delta = "spark.sql.sources.provider" in parameters
    serde = {"Parameters": {"path": location}} if delta else {}
    place = f"s3://nowhere/{name}-__PLACEHOLDER__" if delta else location
    stored = {"Location": place, "InputFormat": "x.TextInputFormat", "SerdeInfo": serde}
    return {"Name": name, "TableType": kind, "Parameters": dict(parameters), "StorageDescriptor": stored}


def care_for(
    table: str, reports: Path, policy: Path | None = None, *, operation: Operation = Operation.OPTIMIZE
) -> RunDocument:
    """Care for the table, by name or address, without Spark."""
    chosen = find_context(policy, reports).chosen(table)
    return run_operation(chosen, Order(operation, "night", str(reports)), mapper=lambda: inline)
