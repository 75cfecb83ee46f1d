"""Each means by which Spark 3.5 does what Spark 4 has a function for, beside that function."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nightkeep.spark import releases

TABLE = pa.table(
    {
        "number": pa.array([1, None, 3, 4, 5], pa.int32()),
        "text": pa.array(["a", "", None, "b", "c"], pa.string()),
        "bytes": pa.array([b"\x00", None, b"", b"x", b"y"], pa.binary()),
        "day": pa.array([date(2026, 11, 1), None, date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)]),
        "at": pa.array([datetime(2026, 11, 1, tzinfo=UTC), None, None, None, None], pa.timestamp("us", tz="UTC")),
        "exact": pa.array([Decimal("1.10"), None, None, None, Decimal("-9.99")], pa.decimal128(10, 2)),
        "list": pa.array([[1, None], [], None, [2], [3]], pa.list_(pa.int64())),
    }
)


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


@pytest.mark.parametrize("table", [TABLE, TABLE.slice(0, 0), TABLE.slice(2, 1)], ids=["rows", "none", "one"])
def test_a_sent_frame_has_the_rows_and_the_types_of_one_that_spark_makes(spark: SparkSession, table: pa.Table) -> None:
    sent, made = releases._sent_frame(spark, table), spark.createDataFrame(table)
    assert sent.schema == made.schema
    assert _rows(releases.arrow_of(sent)) == _rows(releases.arrow_of(made)) == _rows(table)


def test_rows_collected_in_batches_are_those_of_spark_4(spark: SparkSession) -> None:
    frame = spark.createDataFrame(TABLE)
    collected = releases._collected(frame)
    assert _rows(collected) == _rows(frame.toArrow())
    assert releases._collected(frame.where(F.lit(False))).num_rows == 0


def test_parts_are_those_of_spark_4(spark: SparkSession) -> None:
    numbers = spark.range(0, 1000, 1, 3).withColumn("part", F.pmod(F.xxhash64("id"), F.lit(7)))

    def summed(rows: pa.Table) -> pa.Table:
        parts = set(rows.column("part").to_pylist())
        assert len(parts) == 1
        return pa.table({"part": pa.array(parts, pa.int64()), "ids": [sorted(rows.column("id").to_pylist())]})

    schema = "part long, ids array<long>"
    ours = releases.apply_in_parts(numbers.repartition(4, "part"), "part", summed, schema)
    theirs = numbers.repartition(4, "part").groupBy("part").applyInArrow(summed, schema)
    assert sorted(ours.collect()) == sorted(theirs.collect())
    assert ours.count() == 7


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=6))
def test_parts_of_batches_are_their_runs(batches: list[list[int]]) -> None:
    """The twin: sort all values, and count each."""
    values = sorted(value for batch in batches for value in batch)
    cut, start = [], 0
    for batch in batches:
        cut.append(pa.record_batch({"part": pa.array(values[start : start + len(batch)], pa.int64())}))
        start += len(batch)
    parts = [(part.column("part")[0].as_py(), part.num_rows) for part in releases._parts(cut, "part")]
    assert parts == sorted(Counter(values).items())


def test_a_metadata_column_is_the_sources_also_beside_a_column_of_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "t")
    spark.range(3).withColumn("_metadata", F.lit("mine")).write.parquet(folder)
    frame = spark.read.parquet(folder)
    names = frame.select(releases.metadata_column(frame, "_metadata")["file_name"]).collect()
    monkeypatch.setattr(releases, "IS_4", False)
    assert frame.select(releases.metadata_column(frame, "_metadata")["file_name"]).collect() == names
    assert len(names) == 3
