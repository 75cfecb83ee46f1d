"""Equality deletes by float columns: Java decides which values are equal, and our conversion and reader agree."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs

import nightkeep
from nightkeep.checking.check import check
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

pytestmark = [pytest.mark.slow, pytest.mark.in_turn("kind")]

VALUES = (0.0, -0.0, "NaN", 1.5, None, "Infinity", "-Infinity", 0.1)
KINDS = pytest.mark.parametrize("kind", ["float", "double", "widened"])
VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


def made(java: IcebergJava, warehouse: Warehouse, kind: str, version: int) -> Table:
    """Two files of every value, and a third that is newer than some of the deletes; keys of one column and of two."""
    table = warehouse.table()
    java.create(table, [("id", "long"), ("x", kind if kind != "widened" else "float")], Layout(format_version=version))
    java.append(table, [[n, value] for n, value in enumerate(VALUES)])
    delete(java, table, x=-0.0)
    if kind == "widened":
        java.alter(table, {"change": "change_type", "name": "x", "type": "double"})
    java.append(table, [[n, value] for n, value in enumerate(VALUES, 100)])
    delete(java, table, x="NaN")
    delete(java, table, id=100, x=0.0)
    delete(java, table, id=101, x=0.0)
    java.append(table, [[n, value] for n, value in enumerate(VALUES, 200)])
    delete(java, table, x=0.1)
    return table


def delete(java: IcebergJava, table: Table, **key: Any) -> None:
    java.commit(table, java.equality_deletes(table, [key], keys=list(key)))


def ours(table: Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in nightkeep.read(str(runs.address(table))).read_all().to_pylist())


def theirs(java: IcebergJava, table: Table) -> Counter[str]:
    return Counter(repr((number, None if x is None else float(x))) for number, x in java.read(table).rows)


@VERSIONS
@KINDS
def test_conversion_keeps_the_rows_that_java_shows(
    iceberg_java: IcebergJava, warehouse: Warehouse, spark: SparkSession, kind: str, version: int
) -> None:
    table = made(iceberg_java, warehouse, kind, version)
    before = theirs(iceberg_java, table)
    assert before == ours(table)
    shown = {key for key in before if key.startswith(("(0,", "(1,", "(100,", "(101,", "(102,", "(202,"))}
    assert shown == {"(0, 0.0)", "(101, -0.0)", "(202, nan)"}
    done = runs.care_for(table)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert not [each for each in iceberg_java.entries(table) if each["status"] != 2 and each["content"] == 2]
    assert theirs(iceberg_java, table) == before == ours(table)
    report = check(CheckRequest(runs.address(table)), spark=spark)
    assert report.status is CheckStatus.PASSED, report


@VERSIONS
@KINDS
def test_compaction_applies_them_and_java_deletes_on_top(
    iceberg_java: IcebergJava, warehouse: Warehouse, kind: str, version: int
) -> None:
    """Java leaves data files out by bounds, in which it orders -0.0 before 0.0."""
    table = made(iceberg_java, warehouse, kind, version)
    before = theirs(iceberg_java, table)
    done = runs.care_for(table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert theirs(iceberg_java, table) == before == ours(table)
    delete(iceberg_java, table, x=-0.0)
    after = theirs(iceberg_java, table)
    assert {key for key in before if key.endswith("-0.0)")} == before.keys() - after.keys() != set()
    assert after == ours(table)
    delete(iceberg_java, table, x=0.0)
    assert theirs(iceberg_java, table) == ours(table)
    assert runs.care_for(table, run_id="again").outcome is Outcome.VERIFIED
    assert theirs(iceberg_java, table) == ours(table)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_beside_other_keys_is_refused(iceberg_java: IcebergJava, warehouse: Warehouse, kind: str) -> None:
    """Whether Java shows the row depends on the other values of its file."""
    table = warehouse.table()
    iceberg_java.create(table, [("id", "long"), ("x", kind)])
    iceberg_java.append(table, [[1, "NaN"], [2, 1.0]])
    iceberg_java.append(table, [[3, "NaN"], [4, 5.0]])
    iceberg_java.commit(table, iceberg_java.equality_deletes(table, [{"x": "NaN"}, {"x": 5.0}], keys=["x"]))
    assert {number for number, _ in iceberg_java.read(table).rows} == {1, 2}
    for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
        done = runs.care_for(table, run_id=str(operation), operation=operation)
        assert done.outcome is Outcome.REFUSED and "equality deletes by NaN beside other values" in str(done.reason)
    with pytest.raises(RefusedTable, match="equality deletes by NaN beside other values"):
        nightkeep.read(str(runs.address(table))).read_all()


def test_spark_shows_the_same(iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, warehouse: Warehouse) -> None:
    table = made(iceberg_java, warehouse, "double", 2)
    iceberg_spark.attach(warehouse)
    before = Counter(map(repr, iceberg_spark.read(table).rows))
    assert before == Counter(map(repr, iceberg_java.read(table).rows))
    assert runs.care_for(table).outcome is Outcome.VERIFIED
    assert Counter(map(repr, iceberg_spark.read(table).rows)) == before
