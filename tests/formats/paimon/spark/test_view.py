"""What Spark makes of a version, against what Java's own readers show of it."""

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan

from nightkeep.formats.paimon.spark import deletion_vectors
from nightkeep.formats.views import open_view
from nightkeep.model import Address, View
from nightkeep.spark.view import Side, column, comparable

COLUMNS = [
    ("region", "STRING NOT NULL"),
    ("key", "DOUBLE NOT NULL"),
    ("name", "STRING NOT NULL"),
    ("text", "STRING"),
    ("Text", "STRING"),
    ("rank", "FLOAT"),
    ("day", "DATE"),
]
KEYS = (0.0, "-0.0", "NaN", "Infinity", "-Infinity", 1.5)
RANKS = (None, 0.0, "-0.0", "NaN", 1.0, "-Infinity")


def spark_rows(spark: SparkSession, table: Path, view: View) -> Counter[tuple[str, ...]]:
    """Every value as Spark writes it, which for these types is as Java does."""
    relation = open_view(Address("paimon", str(table), "t"), spark)
    number = relation.latest()
    version = relation.version(number)
    assert version is not None
    payload = {
        f.name: comparable(F.col(column(i)), f.dataType).cast("string") for i, f in enumerate(relation.schema.fields)
    }
    rows = relation.rows(Side(number, view), sorted(version.units), payload=payload).collect()
    assert all(row["sound"] for row in rows)
    return Counter(tuple(str(row[f.name]) for f in relation.schema.fields) for row in rows)


def java_rows(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(str, row)) for row in engine.read(table, Scan(options=options)).rows)


@pytest.mark.few(2)
@pytest.mark.in_turn("direction")
@pytest.mark.parametrize("direction", ["ascending", "descending"])
@pytest.mark.parametrize("sequence", ["rank", "day,rank", None])
def test_merges_and_hides_what_java_does(
    spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path, direction: str, sequence: str | None
) -> None:
    dice = random.Random(f"{direction} {sequence}")
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "write-only": "true"}
    if sequence is not None:
        options |= {"sequence.field": sequence, "sequence.field.sort-order": direction}
    table = tmp_path / "t"
    keys = ["region", "key", "name"]
    paimon_java.create(table, Layout(COLUMNS, keys, ["region"], {**options, "bucket-key": "name"}))
    for step in range(5):
        rows = [
            [
                dice.choice(["+I", "+U", "+U", "-D"]),
                dice.choice(["a b", "c%d"]),
                dice.choice(KEYS),
                dice.choice(["x", "y", "\u00e9"]),
                f"step {step}",
                None,
                dice.choice(RANKS),
                dice.choice([None, "2026-11-01", "2026-11-02"]),
            ]
            for _ in range(60)
        ]
        paimon_java.write(table, rows)
        if step in (1, 3):
            paimon_java.compact(table, Compaction(full=step == 1))
            assert spark_rows(spark, table, View.RAW) == java_rows(paimon_java, table, {})
    assert spark_rows(spark, table, View.RAW) == java_rows(paimon_java, table, {})
    assert spark_rows(spark, table, View.MERGED) == java_rows(paimon_java, table, MERGE_ON_READ)


SAMPLES = Path(__file__).parents[4] / "samples" / "paimon" / "shop.db"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["customers", "positions"])
def test_vectors_too_large_to_broadcast_hide_the_same_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sent = spark_rows(spark, SAMPLES / name, View.RAW)
    monkeypatch.setattr(deletion_vectors, "BROADCAST_POSITIONS", 0)
    assert spark_rows(spark, SAMPLES / name, View.RAW) == sent


def test_nanoseconds_are_rounded_down_however_they_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    """Java stores INT96 and Arrow INT64; both are read as microseconds."""
    table = Path(shutil.copytree(SAMPLES / "positions", tmp_path / "t"))
    before = spark_rows(spark, table, View.RAW)
    for path in sorted(table.rglob("bucket-0/data-*.parquet"))[::2]:
        rows = pq.read_table(path)
        pq.write_table(rows, path, store_schema=False)
        assert pq.ParquetFile(path).schema.column(rows.schema.get_field_index("seen_ns")).physical_type == "INT64"
    assert spark_rows(spark, table, View.RAW) == before
