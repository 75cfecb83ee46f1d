"""Conditions on rows: both evaluations against Spark's own, over values that SQL dialects disagree on."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nightkeep.errors import UsageError
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.sql_text.rows.polars_condition import staying

NAN = math.nan
ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "n": pa.array([None, -5, 0, 1, 2, 2**31 - 1, -(2**31), 7], pa.int32()),
        "big": pa.array([2**63 - 1, None, -(2**63), 0, 1, 2, 3, 7], pa.int64()),
        "r": pa.array([NAN, None, -0.0, 0.0, 1.5, math.inf, -math.inf, 7.0], pa.float64()),
        "f": pa.array([0.1, NAN, None, -0.0, 1.5, math.inf, -math.inf, 7.0], pa.float32()),
        "p": pa.array(
            [Decimal("1.50"), None, Decimal("-9999999.99"), Decimal("0.00"), *[Decimal("7.25")] * 4],
            pa.decimal128(9, 2),
        ),
        "t": pa.array(["", None, "a%b", "a\nb", "na\u00efve \u4e2d", "A", "a b.c", "ab"]),
        "u": pa.array(["", "x", None, "a\nb", "b", "A", "ab", "b"]),
        "flag": pa.array([True, False, None, True, False, None, True, False]),
        "d": pa.array([date(2026, 11, 1), None, date(1, 1, 1), *[date(2026, 11, 2)] * 5]),
        "at": pa.array(
            [datetime(2026, 11, 1, tzinfo=UTC), None, *[datetime(2026, 11, 1, 0, 0, 0, 1, UTC)] * 6],
            pa.timestamp("us", "UTC"),
        ),
        "raw": pa.array([b"", None, b"\x00\xff", *[b"a"] * 5]),
        "s": pa.array(
            [None, {"x": None, "in": {"y": 1}}, {"x": 1, "in": None}, *[{"x": 2, "in": {"y": 2}}] * 5],
            pa.struct([("x", pa.int32()), ("in", pa.struct([("y", pa.int64())]))]),
        ),
    }
)
CONDITIONS = (
    "n = 1",
    "n <> 1",
    "n < 1.5",
    "n >= 0 AND n <= 7",
    "NOT n > 1",
    "n IS NULL",
    "n IS NOT NULL OR flag",
    "1 = n",
    "n <=> NULL",
    "n <=> 7",
    "NOT (n <=> big)",
    "n = big",
    "n <> NULL",
    "n = NULL",
    "big > 9223372036854775806",
    "r = 0",
    "r > 1e300",
    "r >= 'NaN'",
    "r <=> DOUBLE('NaN')",
    "r = f",
    "f < 0.1",
    "f = 0.1",
    "r <= f",
    "r <> r",
    "p = 1.5",
    "p > -9999999.995",
    "p < 7.250001",
    "p = 0",
    "big = 0.5",
    "big BETWEEN -1 AND 2.5",
    "n BETWEEN NULL AND 0",
    "t = ''",
    "t LIKE 'a%b'",
    "t LIKE 'a_b%'",
    "t LIKE '%\u4e2d'",
    "t LIKE 'a b.c'",
    "t NOT LIKE 'a%'",
    "t < 'a'",
    "t = u",
    "t <=> u",
    "t IN ('', 'A', NULL)",
    "t NOT IN ('', NULL)",
    "n IN (1, 2.0)",
    "NOT (n IN (1, 7) OR t = 'A')",
    "flag",
    "NOT flag",
    "flag = false",
    "flag AND n > 0 OR r < 0",
    "d = '2026-11-01'",
    "d > DATE'0001-01-01'",
    "at > TIMESTAMP'2026-11-01 00:00:00'",
    "at <= DATE'2026-11-01'",
    "at = TIMESTAMP'2026-11-01T01:00:00.000001+01:00'",
    "raw = X'00ff'",
    "raw >= X'61'",
    "s.x = 1",
    "s.`in`.y >= 1",
    "s.x IS NULL",
    "s IS NULL",
    "s.x <> s.`in`.y",
    "n IN (1, 2.5, -5L)",
    "NOT n IN (7, 1)",
    "r IN (0D, 1.5)",
    "f IN (1.5F, 0.0F)",
    "r NOT IN (-0.0D, 7D)",
    "p IN (CAST(1.50 AS DECIMAL(9,2)), 7.25BD)",
    "(n, t) IN ((1, 'a\\nb'), (2, 'b'), (7, 'ab'))",
    "(big, u) IN ((-9223372036854775808L, 'x'), (0L, 'a\nb'))",
    "NOT ((n, t) IN ((1, 'a\nb'), (7, 'ab')))",
    "(r, f, flag) IN ((0.0D, 0.0F, true), (-0.0D, -0.0F, true))",
    "(r, flag) IN ((-0.0D, true), (7D, false))",
    "(d, at, raw, p) IN ((DATE '2026-11-02', TIMESTAMP '2026-11-01 00:00:00.000001+00:00', X'61',"
    " CAST(7.25 AS DECIMAL(9,2))))",
)
UNKNOWN_TO_US = ("r >= 'NaN'", "r <=> DOUBLE('NaN')")


def test_both_evaluations_state_what_spark_states(spark: SparkSession) -> None:
    asked = [condition for condition in CONDITIONS if condition not in UNKNOWN_TO_US]
    truths = [F.coalesce(F.expr(each), F.lit(False)).alias(f"c{i}") for i, each in enumerate(asked)]
    judged = spark.createDataFrame(ROWS).coalesce(1).select("id", *truths).orderBy("id").toArrow()
    for i, condition in enumerate(asked):
        test = rows_where(condition, ROWS.schema)
        expected = judged[f"c{i}"].to_pylist()
        assert is_true(test, ROWS).to_pylist() == expected, condition
        (batch,) = ROWS.to_batches()
        stays = [n for n, deleted in enumerate(expected) if not deleted]
        assert staying(test, batch)["id"].to_pylist() == stays, condition


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("n", "a boolean column"),
        ("nobody = 1", "a column of the table"),
        ("n + 1 = 2", "n + 1"),
        ("length(t) = 1", "LENGTH"),
        ("t LIKE 'a\\\\_' ESCAPE '!'", "ESCAPE"),
        ("n IN (SELECT 1)", "SELECT"),
        ("n = 'one'", "'one'"),
        ("t = 1", "found 1"),
        ("n = t", "int32"),
        ("d = TIMESTAMP'2026-11-01 00:00:00'", "DATE '..'"),
        *((each, "NaN") for each in UNKNOWN_TO_US),
        ("s = NULL", "nested"),
        ("1 = 1", "a column on one side"),
        ("n = (", "parses"),
        ("n = 1; n = 2", "one condition"),
        ("N = 1", "a column of the table"),
        ("t RLIKE 'a'", "a"),
        ("s.nobody = 1", "nobody"),
        ("(n, big) IN ((1, 1))", "int64"),
        ("(n, big) IN ((1, 1L), (1, NULL))", "NULL"),
        ("(n, big) IN ((1))", "2 literals"),
        ("n IN (300Y)", "TINYINT"),
        ("p IN (CAST(1.555 AS DECIMAL(9,2)))", "DECIMAL"),
        ("f IN (0.1F)", "FLOAT"),
        ("CASE WHEN flag THEN true END", "CASE"),
        ("big > 9223372036854775808", "64 bits"),
    ],
)
def test_what_may_mean_something_else_is_refused_by_name(condition: str, named: str) -> None:
    with pytest.raises(UsageError, match="condition on rows") as caught:
        rows_where(condition, ROWS.schema)
    assert named in str(caught.value)
