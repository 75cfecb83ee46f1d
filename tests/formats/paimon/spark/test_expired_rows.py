"""Spark's own reading of the rule on the age of rows, against a twin."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.formats.paimon.rewrite.test_expired_rows import KINDS, schema, twin

from nightkeep.formats.paimon.metadata.record_expiry import record_age
from nightkeep.formats.paimon.spark.expired_rows import is_expired

CLOCKS_MS = (10_000, 8_000, 10**12 + 10_500)


def test_spark_agrees_with_a_twin(spark: SparkSession) -> None:
    near = [0, 1, -1, 999, -999, -1000, 1000, -2000, -2001, 10**9, 10**9 - 1, 10**9 + 1]
    for kind, type_ in KINDS.items():
        # Spark has no nanoseconds.
        if kind == "TIMESTAMP(9)":
            continue
        values = [*near, None] if kind == "INT" else [*near, *(value * 1000 for value in near), 10**12 + 500, None]
        column = pa.array(values, pa.int32() if kind == "INT" else pa.int64()).cast(type_)
        stored = column.cast(pa.timestamp("us", type_.tz)) if pa.types.is_timestamp(type_) else column
        rows = spark.createDataFrame(pa.table({"place": range(len(values)), "t": stored}))
        age = record_age(schema(kind))
        assert age is not None
        for clock_ms in CLOCKS_MS:
            shown = rows.select("place", F.coalesce(is_expired(F.col("t"), age, clock_ms), F.expr("false")))
            found = [gone for _, gone in sorted(map(tuple, shown.collect()))]
            assert found == [twin(value, kind, age.limit(clock_ms)) for value in values], (kind, clock_ms)
