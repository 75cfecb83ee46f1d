"""The text of a variant, for the check: equal for equal values, and types kept apart at any depth."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.variant_values import Value, column

from nightkeep.spark.variant_text import variant_text

EQUAL = [
    ("""parse_json('{"b": 2, "a": 1}')""", "to_variant_object(named_struct('a', 1L, 'b', 2S))"),
    ("parse_json('[1, 2.5]')", "to_variant_object(array(1.00, 2.500))"),
    ("parse_json('100')", "to_variant_object(array(100.000))::array<variant>[0]"),
    ("parse_json('[{\"a\": [1.0]}]')", "parse_json('[{\"a\": [1]}]')"),
]
UNLIKE = [
    ("parse_json('null')", "cast(null as variant)"),
    ("parse_json('[1.0, 1.5]')", "to_variant_object(array(1.0D, 1.5D))"),
    ("to_variant_object(array(1.5D, 1.5D))", "to_variant_object(array(float(1.5), float(1.5)))"),
    (
        "parse_json('[\"2020-01-01\", 1]')",
        MIXED_DATE := "to_variant_object(named_struct('x', array(date'2020-01-01')))",
    ),
    ('parse_json(\'{"x": ["2020-01-01"]}\')', MIXED_DATE),
    (
        "to_variant_object(array(timestamp'2020-01-01 00:00:00'))",
        "to_variant_object(array(timestamp_ntz'2020-01-01 00:00:00'))",
    ),
    ("to_variant_object(array(date'2020-01-01'))", "to_variant_object(array(timestamp_ntz'2020-01-01 00:00:00'))"),
    ("to_variant_object(array(X'00'))", "parse_json('[\"AA==\"]')"),
    ("to_variant_object(array(0D))", "to_variant_object(array(-0D))"),
    ("to_variant_object(array(double('NaN')))", "parse_json('[\"NaN\"]')"),
    ("parse_json('[]')", "parse_json('{}')"),
    ("parse_json('[[]]')", "parse_json('[[], []]')"),
    ("parse_json('[{\"a\": 1}, {}]')", "parse_json('[{}, {\"a\": 1}]')"),
    ('parse_json(\'{"a": null, "l": []}\')', "parse_json('{\"l\": []}')"),
    ("parse_json('[{\"a.1:b\": 1}]')", 'parse_json(\'[{"a": {"b": 1}}]\')'),
    ('parse_json(\'{"a b": 1, "l": []}\')', 'parse_json(\'{"a": 1, "l": []}\')'),
    ("parse_json('[\"1\"]')", "parse_json('[1]')"),
    ("parse_json('[true]')", "parse_json('[\"true\"]')"),
    ("parse_json('[\"a\\\\nb\"]')", 'parse_json(\'["a", "b"]\')'),
]
"""The last is one text with a line feed, and two texts."""


def texts(spark: SparkSession, pairs: list[tuple[str, str]]) -> list[tuple[object, ...]]:
    rows = ", ".join(f"({at}, {left}, {right})" for at, (left, right) in enumerate(pairs))
    table = spark.sql(f"SELECT * FROM VALUES {rows} AS t (at, a, b)")
    return [
        tuple(row) for row in table.orderBy("at").select(variant_text(F.col("a")), variant_text(F.col("b"))).collect()
    ]


@pytest.mark.slow
def test_equal_values_have_one_text_and_others_have_not(spark: SparkSession) -> None:
    assert [pair for pair, (a, b) in zip(EQUAL, texts(spark, EQUAL), strict=True) if a != b] == []
    assert [pair for pair, (a, b) in zip(UNLIKE, texts(spark, UNLIKE), strict=True) if a == b] == []


@pytest.mark.slow
def test_a_uuid_and_its_text_differ(spark: SparkSession, tmp_path: Path) -> None:
    """At any depth. No expression of Spark makes a UUID in a variant: it is read of a file."""
    plain: list[Value] = [("uuid", bytes(range(16))), ("string", b"00010203-0405-0607-0809-0a0b0c0d0e0f")]
    held = [*plain, *(("object", (("a", each),)) for each in plain), *(("array", (each, ("null",))) for each in plain)]
    pq.write_table(pa.table({"v": column(held, Random(1))}), tmp_path / "held.parquet", store_schema=False)
    rows = spark.read.schema("v variant").parquet(str(tmp_path)).select(variant_text(F.col("v"))).collect()
    assert len({text for (text,) in rows}) == len(held)


@pytest.mark.slow
def test_a_deep_variant_is_taken_apart_to_its_end(spark: SparkSession) -> None:
    deep = [f"parse_json('{'[' * 200}{value}{']' * 200}')" for value in ("1", "1.5", '"1"')]
    first, second, third = (texts(spark, [(each, "null::variant")])[0][0] for each in deep)
    assert len({first, second, third}) == 3
    assert str(first).endswith(f"{'[0]' * 200} NUMBER 1")
