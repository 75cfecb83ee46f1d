"""Texts that are no UTF-8, as Spark writes them: their bytes pass, and nothing that shows them fails."""

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg.runs import address, care_for, configured

from nightkeep.checking.check import check
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.records import CheckStatus

HEX = ["id", "hex(note)"]


@pytest.mark.few(1)
@pytest.mark.parametrize("metrics", ["truncate(16)", "none"])
def test_bytes_of_a_text_are_what_spark_reads_before(
    iceberg_spark: IcebergSpark, spark: SparkSession, iceberg: Warehouse, metrics: str
) -> None:
    with configured(iceberg):
        table = iceberg.table()
        iceberg_spark.attach(iceberg)
        properties = f"TBLPROPERTIES ('write.metadata.metrics.default' = '{metrics}')"
        iceberg_spark.sql(
            f"CREATE NAMESPACE IF NOT EXISTS {iceberg.name}.db",
            f"CREATE TABLE {table.sql} (id BIGINT, note STRING) USING iceberg {properties}",
        )
        for number in range(3):
            values = f"({number}, cast(X'C328FF41' AS STRING)), ({number + 10}, cast(X'FF' AS STRING)), (20, 'b')"
            iceberg_spark.sql(f"INSERT INTO {table.sql} VALUES {values}")
        before = iceberg_spark.read(table, columns=HEX)
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert (done.outcome, done.reason) == (Outcome.VERIFIED, None), done
        assert iceberg_spark.read(table, columns=HEX) == before
        report = check(CheckRequest(address(table), evidence=Evidence.ROWS), spark=spark)
        assert report.status is CheckStatus.PASSED, report
