"""What columns are set to: both evaluations against Spark's own, also where Spark has no value."""

import math
from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.sql_text.rows.test_parse import ROWS
from tests.support.extended import some_extended

from nightkeep.errors import UsageError
from nightkeep.sql_text.rows.arrow_expression import with_values
from nightkeep.sql_text.rows.chains import is_reordered
from nightkeep.sql_text.rows.expression import Arithmetic, UnfitValueError
from nightkeep.sql_text.rows.expression_types import common
from nightkeep.sql_text.rows.parse_assignments import assignments, read_columns
from nightkeep.sql_text.rows.polars_expression import expected_rows

SMALL = pa.table(
    {
        **{name: ROWS.column(name) for name in ("id", "t", "u", "flag", "d", "at", "raw", "r")},
        "b": pa.array([None, -3, 0, 1, 2, 100, -100, 7], pa.int8()),
        "h": pa.array([5, -3, 0, None, 2, 1000, -1000, 7], pa.int16()),
        "n": pa.array([None, -5, 0, 1, 2, 1_000_000, -1_000_000, 7], pa.int32()),
        "big": pa.array([10**12, None, -(10**12), 0, 1, 2, 3, 7], pa.int64()),
        "f": pa.array([0.1, math.nan, None, -0.0, 1.5, 3.25, -7.5, 7.0], pa.float32()),
        "x": pa.array([0.1, math.nan, None, -0.0, 1.5, 1e300, -7.5, 1 / 3], pa.float64()),
        "p": pa.array(
            [
                Decimal("1.50"),
                None,
                Decimal("-9999.99"),
                Decimal("0.05"),
                *map(Decimal, ("7.25", "-7.25", "123.45", "0.01")),
            ],
            pa.decimal128(9, 2),
        ),
        "q": pa.array(
            [
                Decimal("1.5005"),
                None,
                Decimal("-9.9995"),
                Decimal("0.0005"),
                *map(Decimal, ("7.2550", "-7.2550", "123.4450", "0.0001")),
            ],
            pa.decimal128(12, 4),
        ),
    }
)
SETS = (
    "n = n + 1",
    "n = 1",
    "n = NULL",
    "b = b + 1",
    "b = 5",
    "b = -b",
    "h = b + h",
    "big = n * 1000L",
    "big = n",
    "n = big - big",
    "n = (n + 1) * 2 - b",
    "x = n / 2",
    "x = b / h",
    "x = n",
    "x = big",
    "x = f",
    "f = x",
    "f = f * f",
    "x = x + 1",
    "x = x * 0.1",
    "x = f + 0.1",
    "x = 1e3",
    "x = 0.1",
    "f = 1.5",
    "f = f + 1.5F",
    "p = p + 1",
    "p = p * 1.1",
    "p = p - q",
    "p = q",
    "p = -p",
    "q = p * 0.005",
    "p = 12.345",
    "p = n - n",
    "p = b",
    "p = q * q - 1",
    "q = CAST(p AS DECIMAL(5, 1))",
    "p = CAST(q * 100 AS DECIMAL(12, 1))",
    "q = 1.00005",
    "t = u",
    "t = concat(t, '-', u)",
    "t = t || 'x'",
    "t = CAST(n AS STRING)",
    "t = 'it\\'s \\\\ \\n'",
    "t = NULL",
    "t = concat('n=', CAST(n + 1 AS STRING))",
    "t = CAST(big AS STRING) || CAST(b AS STRING)",
    "n = CASE WHEN n = 0 THEN 0 ELSE n END",
    "x = CASE WHEN n = 0 THEN 0 WHEN n > 1 THEN 1.5 ELSE 10 / n END",
    "n = CASE WHEN flag THEN 1 END",
    "x = IF(h = 0, NULL, n / h)",
    "n = coalesce(n, b, 9)",
    "big = coalesce(n, big)",
    "x = coalesce(x, n, 0.5)",
    "p = coalesce(p, q, 0)",
    "t = nvl(t, u)",
    "n = nullif(n, 0)",
    "x = 1 / nullif(n, 0)",
    "flag = true",
    "flag = CASE WHEN n > 0 THEN flag ELSE false END",
    "d = DATE '2020-02-29'",
    "d = NULL",
    "d = CASE WHEN flag THEN d ELSE DATE '1999-12-31' END",
    "at = TIMESTAMP '2026-01-02 03:04:05.123456+00:00'",
    "raw = X'00ff'",
    "raw = CASE WHEN t = 'a' THEN NULL ELSE raw END",
    "n = IF(t LIKE 'a%' AND n IS NOT NULL, 5, -5)",
    "n = IF(n IN (1, 7), n * 10, n)",
    "b = CAST(n AS TINYINT) - CAST(n AS TINYINT)",
    "big = -9223372036854775808",
    "n = - 2147483648",
    "p = 1.5BD + 2",
    "x = -x",
    "x = 3D - f",
    "big = CAST(5 AS BIGINT) + h",
    "x = CAST(p AS DOUBLE)",
    "x = 2 * n * 1.5D",
    "h = h * b",
    "n = n * 3000",
    "b = 100 + b",
    "x = n / b",
    "x = 1.5 / x",
    "n = n - 2147483647",
    "p = p * 100000",
    "p = n",
    "q = p * 1000000",
    "b = h",
    "b = coalesce(h, 0)",
    "p = 99999999.99",
    "big = -(-n)",
)
NOT_FOR_US = ("b = CAST(n AS TINYINT) - CAST(n AS TINYINT)", "x = CAST(p AS DOUBLE)", "p = 99999999.99")
_SPARK = {
    "n": "INT",
    "b": "TINYINT",
    "h": "SMALLINT",
    "big": "BIGINT",
    "x": "DOUBLE",
    "f": "FLOAT",
    "p": "DECIMAL(9, 2)",
    "q": "DECIMAL(12, 4)",
    "t": "STRING",
    "flag": "BOOLEAN",
    "d": "DATE",
    "at": "TIMESTAMP",
    "raw": "BINARY",
}
Values = list[object]


def ours(text: str, rows: pa.Table) -> tuple[Values | None, Values | None]:
    """What both evaluations make of the column that is set; None where there is no value."""
    found = assignments((text,), rows.schema)
    column = found[0].column
    answers: list[Values | None] = []
    for evaluate in (
        lambda: with_values(found, rows),
        lambda: pa.Table.from_batches([expected_rows(found, rows.combine_chunks().to_batches()[0])]),
    ):
        try:
            table = evaluate()
            assert table.schema == rows.schema
            answers.append(plain(table.column(column).to_pylist()))
        except UnfitValueError:
            answers.append(None)
    return answers[0], answers[1]


def theirs(spark: SparkSession, text: str, rows: pa.Table) -> Values | None:
    """None where Spark has no value."""
    try:
        return all_of_theirs(spark, [text], rows)[0]
    except PySparkException:
        return None


def all_of_theirs(spark: SparkSession, texts: Sequence[str], rows: pa.Table) -> list[Values]:
    """What Spark makes of each, by one job."""
    parted = [text.partition("=") for text in texts]
    columns = [
        F.expr(f"CAST({value} AS {_SPARK[column.strip()]})").alias(f"v{n}")
        for n, (column, _, value) in enumerate(parted)
    ]
    told = spark.createDataFrame(rows).coalesce(1).select("id", *columns).orderBy("id").toArrow()
    return [plain(told.column(f"v{n}").to_pylist()) for n in range(len(texts))]


def plain(values: Sequence[object]) -> Values:
    return ["nan" if isinstance(v, float) and math.isnan(v) else repr(v) for v in values]


def test_both_evaluations_set_what_spark_sets(spark: SparkSession) -> None:
    made = {text: ours(text, SMALL) for text in SETS if text not in NOT_FOR_US}
    valued = [text for text, values in made.items() if values != (None, None)]
    expected = dict(zip(valued, all_of_theirs(spark, valued, SMALL), strict=True))
    for text, values in made.items():
        told = expected.get(text) or theirs(spark, text, SMALL)
        assert values == (told, told), text
    assert len(made) // 2 < len(valued) < len(made)


@pytest.mark.parametrize("seed", some_extended(range(8), keep=1))
def test_random_expressions(seed: int, spark: SparkSession) -> None:
    random, same = Random(seed), 0
    for _ in range(40):
        column = random.choice(("b", "h", "n", "big", "x", "p", "q", "t"))
        text = f"{column} = {_random(random, column == 't', 3)}"
        try:
            assignments((text,), SMALL.schema)
        except UsageError:
            continue
        expected = theirs(spark, text, SMALL)
        assert ours(text, SMALL) == (expected, expected), text
        same += expected is not None
    assert same


def _random(random: Random, is_text: bool, depth: int) -> str:
    def part() -> str:
        return _random(random, is_text, depth - 1)

    leaves = (
        ("t", "u", "'a'", "NULL") if is_text else ("b", "h", "n", "big", "p", "q", "1", "0", "2.5", "-7", "3L", "x")
    )
    if depth == 0 or random.random() < 0.2:
        return random.choice(leaves)
    test = random.choice(("n > 0", "t = u", "b IS NULL", "flag", "h BETWEEN 0 AND 5", "NOT big = 0", "p < 1.5"))
    shared = (
        lambda: f"CASE WHEN {test} THEN {part()} ELSE {part()} END",
        lambda: f"coalesce({part()}, {part()})",
        lambda: f"IF({test}, {part()}, NULL)",
    )
    if is_text:
        more = (lambda: f"concat({part()}, {part()})", lambda: f"CAST({random.choice(('b', 'n', 'big'))} AS STRING)")
        return random.choice((*shared, *more))()
    operations = (lambda: f"({part()} {random.choice('+-*+-*/')} {part()})", lambda: f"(-{part()})")
    return random.choice((*shared, *operations, *operations))()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("nobody = 1", "a column of the table"),
        ("n", "no equals sign"),
        ("n = ", "found none"),
        ("n = m", "a column"),
        ("n = upper(t)", "UPPER"),
        ("n = 'one'", "string, which is not converted to int32"),
        ("t = 1", "to string"),
        ("t = n", "int32, which is not converted to string"),
        ("n = x", "double"),
        ("n = 1.5", "1.5"),
        ("b = 300", "300"),
        ("n = n % 2", "%"),
        ("n = n DIV 2", "DIV"),
        ("p = p / 2", "/ of decimals"),
        ("n = TRY_CAST(big AS INT)", "TRY_CAST"),
        ("n = CAST(t AS INT)", "not converted to int32"),
        ("n = CASE n WHEN 1 THEN 2 END", "without a value after CASE"),
        ("d = '2026-01-01'", "date32"),
        ("f = 0.1", "does not hold exactly"),
        ("f = f + n", "FLOAT together with integers"),
        ("n = t + 1", "+ of string"),
        ("p = x", "double, which is not converted to decimal"),
        ("n = (SELECT 1)", "SELECT"),
        ("n = n = 1", "n = 1"),
        ("n = sum(n)", "SUM"),
        ("n = rand()", "RAND"),
        ("s = NULL", "plain values"),
        ("n + 1 = 2", "a column of"),
        ("N = 1", "a column of the table"),
        ("n = 1; n = 2", "one expression"),
        ("t = concat(t, n)", "CAST(.. AS STRING)"),
        ("p = 99999999.99", "does not fit"),
        ("t = 'it''s'", "next to each other"),
        ("t = 'a\\u0041'", "found \\u"),
        ("x = CAST(p AS DOUBLE)", "not converted to double"),
        ("n = n * (b * 2)", "a constant inside a chain"),
        ("big = big + 1L + n", "a constant inside a chain"),
        ("n = 2 * n * 3", "a constant inside a chain"),
    ],
)
def test_anything_else_is_refused_by_name(text: str, named: str) -> None:
    schema = SMALL.schema.append(pa.field("s", pa.struct([("x", pa.int32())])))
    with pytest.raises(UsageError) as failure:
        assignments((text,), schema)
    assert named in str(failure.value)


@pytest.mark.parametrize("text", ["n = n + b + 1", "n = 2 * n", "n = n + 1 - b", "n = n * b * 2", "n = n + b * 2"])
def test_a_constant_at_the_end_of_a_chain_is_where_spark_has_it(text: str) -> None:
    (found,) = assignments((text,), SMALL.schema)
    assert isinstance(found.value, Arithmetic) and not is_reordered(found.value)


def test_a_column_is_set_once() -> None:
    with pytest.raises(UsageError, match="n more than once"):
        assignments(("n = 1", "b = 2", "`n` = 3"), SMALL.schema)
    with pytest.raises(UsageError, match="found none"):
        assignments((), SMALL.schema)


def test_every_value_is_of_the_row_as_it_was() -> None:
    found = assignments(("n = b", "b = 1", "t = u", "u = t"), SMALL.schema)
    changed = with_values(found, SMALL)
    assert changed.column("n").cast(pa.int8()).equals(SMALL.column("b"))
    assert (changed.column("t"), changed.column("u")) == (SMALL.column("u"), SMALL.column("t"))
    assert pc.all(pc.equal(changed.column("b"), 1)).as_py()
    assert read_columns(found) == {"b", "u", "t"}
    assert common([each.value for each in found[:1]]) == pa.int32()


def test_no_rows_stay_no_rows() -> None:
    found = assignments(("n = b + 1", "x = 1 / n", "t = coalesce(t, 'a')"), SMALL.schema)
    assert with_values(found, SMALL.slice(0, 0)).num_rows == 0
    assert expected_rows(found, pa.RecordBatch.from_pylist([], SMALL.schema)).num_rows == 0
