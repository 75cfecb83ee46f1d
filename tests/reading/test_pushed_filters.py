"""Filters of Spark as tests of rows: the same rows, or left to Spark."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from nightkeep.reading.pushed_filters import pushed_tests
from nightkeep.sql_text.rows.arrow_condition import is_true

ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, 4], pa.int32()),
        "r": pa.array([1.5, math.nan, None, -0.0]),
        "t": pa.array(["ab", "b%", None, "cab"]),
        "p": pa.array([Decimal("1.50"), None, Decimal("2.00"), Decimal("3.00")], pa.decimal128(9, 2)),
        "d": pa.array([date(2026, 1, 1), None, date(2026, 1, 2), date(2026, 1, 3)]),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 4, pa.timestamp("us", "UTC")),
        "fine": pa.array([datetime(2026, 1, 1)] * 4, pa.timestamp("ns")),
        "s": pa.array([{"x": 1}, {"x": None}, None, {"x": 4}], pa.struct([("x", pa.int64())])),
    }
)
TAKEN: list[tuple[spark.Filter, list[int]]] = [
    (spark.EqualTo(("n",), 2), [1]),
    (spark.Not(spark.EqualTo(("n",), 2)), [0, 3]),
    (spark.EqualTo(("n",), None), []),
    (spark.EqualNullSafe(("n",), None), [2]),
    (spark.GreaterThan(("n",), 1), [1, 3]),
    (spark.GreaterThanOrEqual(("r",), 1.5), [0, 1]),
    (spark.LessThan(("r",), 0.5), [3]),
    (spark.EqualTo(("r",), math.nan), [1]),
    (spark.LessThanOrEqual(("p",), Decimal("2.00")), [0, 2]),
    (spark.In(("t",), ("ab", "b%")), [0, 1]),
    (spark.IsNull(("s", "x")), [1, 2]),
    (spark.IsNotNull(("t",)), [0, 1, 3]),
    (spark.StringStartsWith(("t",), "ab"), [0]),
    (spark.StringEndsWith(("t",), "ab"), [0, 3]),
    (spark.StringContains(("t",), "b"), [0, 1, 3]),
    (spark.EqualTo(("d",), date(2026, 1, 2)), [2]),
    (spark.LessThan(("at",), datetime(2026, 1, 2, tzinfo=UTC)), [0, 1, 2, 3]),
]
LEFT = [
    spark.EqualTo(("n",), 2**40),
    spark.EqualTo(("gone",), 1),
    spark.StringContains(("t",), "50%"),
    spark.In(("n",), (1, None)),
    spark.EqualTo(("fine",), datetime(2026, 1, 1)),
    spark.EqualTo(("s",), {"x": 1}),
    spark.EqualTo(("at",), datetime(2026, 1, 1)),
    spark.Not(spark.EqualTo(("n",), "x")),
    spark.EqualTo(("p",), Decimal("1.505")),
]


@pytest.mark.parametrize(
    ("pushed", "rows"), TAKEN, ids=lambda each: str(each) if isinstance(each, spark.Filter) else ""
)
def test_a_filter_is_true_of_the_rows_that_spark_takes(pushed: spark.Filter, rows: list[int]) -> None:
    (test,), others = pushed_tests([pushed], ROWS.schema)
    assert others == ()
    assert [at for at, true in enumerate(is_true(test, ROWS).to_pylist()) if true] == rows


@pytest.mark.parametrize("pushed", LEFT, ids=str)
def test_what_might_mean_something_else_is_left_to_spark(pushed: spark.Filter) -> None:
    assert pushed_tests([pushed], ROWS.schema) == ((), (pushed,))
