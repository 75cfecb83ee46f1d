"""Files with Spark's marks of the hybrid Julian-Gregorian calendar, adopted by a table: Iceberg's readers ignore the
marks, and the Parquet reader of Spark, by which the check reads, does not."""

from pathlib import Path

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import address, care_for, configured

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome

LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "America/Los_Angeles",
}


def adopted(spark: IcebergSpark, java: IcebergJava, table: Table, folder: Path, day: str) -> None:
    """Three files of two rows, as Spark's add_files would take them over."""
    java.create(table, [("id", "long"), ("d", "date"), ("t", "timestamptz")])
    for number in range(0, 6, 2):
        target = folder / str(number)
        values = (
            f"id, DATE '{day}' AS d, TIMESTAMP '{day} 12:00:00' AS t FROM VALUES ({number}L), ({number + 1}L) v(id)"
        )
        with spark.configured(LEGACY):
            spark.sql(f"INSERT OVERWRITE DIRECTORY '{target}' USING parquet SELECT /*+ COALESCE(1) */ {values}")
        java.commit(table, java.adopt(table, next(target.glob("*.parquet"))), kind="append")


def test_values_that_only_spark_moves_are_refused_by_name(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, iceberg: Warehouse, tmp_path: Path
) -> None:
    table = iceberg.table()
    with configured(iceberg):
        adopted(iceberg_spark, iceberg_java, table, tmp_path, "1500-03-01")
        before = iceberg_java.read(table)
        # Ten days later than Spark wrote it: none of Iceberg's readers moves it back.
        assert set(before.column("d")) == {"1500-03-11"}
        assert iceberg_spark.read(table).rows == before.rows
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert (done.outcome, done.committed_version) == (Outcome.REFUSED, None)
        assert "column d: days or times of the Julian calendar" in str(done.reason)
        with pytest.raises(RefusedTable, match="column d: days or times of the Julian calendar"):
            nightkeep.read(str(address(table))).read_all()
        assert iceberg_java.read(table) == before


def test_values_that_no_reader_moves_are_packed(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, iceberg: Warehouse, tmp_path: Path
) -> None:
    table = iceberg.table()
    with configured(iceberg):
        adopted(iceberg_spark, iceberg_java, table, tmp_path, "2024-02-29")
        before = iceberg_java.read(table)
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert iceberg_java.read(table) == before
