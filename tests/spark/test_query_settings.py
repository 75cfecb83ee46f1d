"""Settings that hold for a block, and are the earlier ones after it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from nightkeep.spark.query_settings import FEW_ROWS, changed_settings, planned_for

WHOLE, PARTITIONS, UNSET = "spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions", "spark.nightkeep.unset"


def _held(spark: SparkSession) -> Iterator[str | None]:
    yield from (spark.conf.get(name, None) for name in (WHOLE, PARTITIONS, UNSET))


def test_a_query_over_few_rows_is_interpreted_and_one_over_many_is_compiled(spark: SparkSession) -> None:
    before = list(_held(spark))
    with planned_for(spark, FEW_ROWS):
        assert list(_held(spark)) == ["false", "2", None]
        assert sorted(row.n for row in spark.range(7).groupBy("id").count().selectExpr("id * count n").collect()) == [
            *range(7)
        ]
    with planned_for(spark, FEW_ROWS + 1):
        assert list(_held(spark)) == before
    assert list(_held(spark)) == before


def test_settings_are_restored_after_a_failure(spark: SparkSession) -> None:
    before = list(_held(spark))
    with pytest.raises(KeyError), changed_settings(spark, {WHOLE: "false", UNSET: "1"}):
        assert spark.conf.get(UNSET) == "1"
        raise KeyError
    assert list(_held(spark)) == before
