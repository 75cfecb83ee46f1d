"""Columns of type unknown and defaults of nanosecond timestamps: worked on, checked, and Java shows the same rows."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs

from nightkeep.checking.check import check
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

pytestmark = [pytest.mark.slow]

COLUMNS = [("id", "long"), ("u", "unknown"), ("text", "string"), ("m", "timestamp_ns")]
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def made(java: IcebergJava, warehouse: Warehouse) -> Table:
    """Files of before and after a column with a default, and deletes by keys and by positions."""
    table = warehouse.table()
    java.create(table, COLUMNS, Layout(format_version=3))
    for first in range(0, 40, 10):
        java.append(table, [[n, None, f"text {n}", "2026-11-01T00:00:00.000000001"] for n in range(first, first + 10)])
    for kind, zone in (("timestamp_ns", ""), ("timestamptz_ns", "Z")):
        added = {"name": f"late_{kind}", "type": kind, "default": f"1969-12-31T23:59:59.999999999{zone}"}
        java.alter(table, {"change": "add_column", **added})
    java.append(table, [[50, None, None, None, None, None]])
    java.commit(table, java.equality_deletes(table, [{"id": 3}, {"id": 14}], keys=["id"]))
    path = min(each["file_path"] for each in java.entries(table) if each["content"] == 0)
    java.commit(table, java.vectors(table, [(path, 0)]))
    return table


def shown(java: IcebergJava, table: Table) -> Counter[Any]:
    names = [field["name"] for field in table.document()["schemas"][-1]["fields"]]
    return Counter(map(tuple, java.read(table, columns=[*names, *LINEAGE]).rows))


@pytest.mark.parametrize("operation", [Operation.PERSIST_DELETES, Operation.OPTIMIZE])
def test_rows_stay_and_the_check_passes(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, operation: Operation
) -> None:
    table = made(iceberg_java, warehouse)
    before = shown(iceberg_java, table)
    done = runs.care_for(table, operation=operation)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert shown(iceberg_java, table) == before
    report = check(CheckRequest(runs.address(table), version=done.committed_version), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    # Java goes on, and we on top of it.
    iceberg_java.append(table, [[60, None, "later", None, None, None]])
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"id": 22}], keys=["id"]))
    before = shown(iceberg_java, table)
    again = runs.care_for(table, run_id="again", operation=Operation.OPTIMIZE, full=True)
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert shown(iceberg_java, table) == before
