"""Texts that are no UTF-8, as delta-spark writes them: their bytes pass, and nothing that shows them fails."""

from pathlib import Path

from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.runs import optimize

from nightkeep.checking.check import check
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.records.document import CheckStatus

HEX = ["id", "hex(note)"]


def test_bytes_of_a_text_are_what_delta_spark_reads_before(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    delta_spark.sql(f"CREATE TABLE {named(table)} (id BIGINT, note STRING) USING delta")
    for number in range(3):
        values = f"({number}, cast(X'C328FF41' AS STRING)), ({number + 10}, cast(X'FF' AS STRING)), (20, 'b')"
        delta_spark.sql(f"INSERT INTO {named(table)} VALUES {values}")
    before = delta_spark.read(table, columns=HEX)
    done = optimize(table)
    assert (done.outcome, done.reason) == (Outcome.VERIFIED, None), done
    assert delta_spark.read(table, columns=HEX) == before
    report = check(CheckRequest(Address("delta", str(table), "t"), evidence=Evidence.ROWS), spark=spark)
    assert report.status is CheckStatus.PASSED, report
