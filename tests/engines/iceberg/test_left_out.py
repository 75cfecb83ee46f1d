"""Tables with a partition that we do not read: it stays as it is, is named, and the others are maintained."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import COLUMNS, DAYS, address, care_for, configured, opened, row

from nightkeep.checking.check import check
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus

WHY = "identity partition values unlike the rows'"


@pytest.fixture
def table(iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield iceberg.table()


def adopted(java: IcebergJava, table: Table, version: int, folder: Path, *, days: tuple[str, ...]) -> None:
    """A partition of each of these days, with files whose rows are of another day."""
    java.create(table, COLUMNS, Layout((("day", "identity"),), version))
    for number, day in ((number, day) for day in days for number in range(2)):
        file = folder / f"{day}-{number}.parquet"
        pq.write_table(pa.table({"id": [number], "day": ["1999-01-01"], "price": [0.5], "note": ["adopted"]}), file)
        java.commit(table, java.adopt(table, file, partition=[day]), kind="append")


def made(java: IcebergJava, table: Table, version: int, folder: Path) -> None:
    """An old day that is not read, and two since in small files with deletes."""
    adopted(java, table, version, folder, days=DAYS[:1])
    for start in (0, 20, 40):
        java.append(table, [row(day, n) for day in DAYS[1:] for n in range(start, start + 20)])
    java.cdc(table, [("+U", row(day, n, "updated")) for day in DAYS[1:] for n in range(10, 30)], keys=["id", "day"])


def old_files(table: Table) -> list[object]:
    return [unit.files for unit in opened(table).snapshot().units if unit.left_out]


@pytest.mark.few(1)
@pytest.mark.in_turn("operation")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("operation", [Operation.PERSIST_DELETES, Operation.OPTIMIZE])
def test_other_partitions_are_maintained(
    iceberg_java: IcebergJava, spark: SparkSession, table: Table, version: int, operation: Operation, tmp_path: Path
) -> None:
    made(iceberg_java, table, version, tmp_path)
    truth, before = iceberg_java.read(table), old_files(table)

    document = care_for(table, operation=operation, full=True)
    report = check(CheckRequest(address(table)), spark=spark)
    again = care_for(table, operation=operation, run_id="again")

    assert document.outcome is Outcome.VERIFIED, document.reason
    assert [unit.partition for unit in document.units] == [f"day={day}" for day in DAYS[1:]]
    (note,) = [note for note in document.plan.notes if "left out" in note]
    assert note.startswith(f"1 of 3 partitions are left out, day={DAYS[0]}: {WHY}")
    assert old_files(table) == before and len(before) == 1
    assert iceberg_java.read(table) == truth
    assert report.status is CheckStatus.PASSED, report
    assert again.outcome is Outcome.UNCHANGED and "1 of 3 partitions are left out" in str(again.reason)


def test_a_table_of_nothing_else_is_refused(iceberg_java: IcebergJava, table: Table, tmp_path: Path) -> None:
    adopted(iceberg_java, table, 2, tmp_path, days=DAYS)
    document = care_for(table, operation=Operation.OPTIMIZE)
    assert document.outcome is Outcome.REFUSED
    assert WHY in str(document.reason)
