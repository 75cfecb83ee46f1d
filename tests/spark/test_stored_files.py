"""Positions and names of files in Spark's joins."""

from collections.abc import Iterator
from random import Random

import pytest
from pyroaring import BitMap, BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nightkeep.spark.stored_files import deleted_positions, packed, with_file_facts, without_positions

FILES, ROWS = 3, 300
BORDERS = (0, 1, 62, 63, 64, 65, 127, 128, 191, 192, ROWS - 1)


def decoded(source: tuple[int, bytes]) -> Iterator[tuple[int, BitMap | BitMap64]]:
    number, vector = source
    yield number, BitMap.deserialize(vector)


@pytest.mark.parametrize("most", [0, 1 << 20])
@pytest.mark.parametrize("seed", range(4))
def test_rows_without_deleted_positions(spark: SparkSession, seed: int, most: int) -> None:
    """The last file has two vectors, and the first one may have an empty one."""
    dice = Random(seed)
    vectors = [
        (number, {dice.choice(BORDERS) for _ in range(dice.randrange(6))} | set(dice.sample(range(ROWS), 40 * seed)))
        for number in (0, FILES - 1, FILES - 1)
    ]
    rows = spark.range(FILES * ROWS).select(
        F.col("id"), packed(F.floor(F.col("id") / ROWS), F.col("id") % ROWS).alias("position")
    )
    sources = [(number, BitMap(deleted).serialize()) for number, deleted in vectors]
    count = sum(len(each) for _, each in vectors)
    live = without_positions(rows, deleted_positions(spark, sources, decoded, count=count, most=most))
    assert live.columns == ["id", "position"]
    gone = {number * ROWS + each for number, deleted in vectors for each in deleted}
    assert sorted(row["id"] for row in live.collect()) == [n for n in range(FILES * ROWS) if n not in gone]


def test_rows_of_files_without_facts_are_left_out(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a", 1), ("b", 2), ("b", 3), ("c", 4)], "name string, value int")
    facts = spark.createDataFrame([("b", 7), ("a", 8), ("d", 9)], "name string, unit int")
    found = with_file_facts(rows, facts, "name")
    assert found.columns == ["name", "value", "unit"]
    assert sorted(map(tuple, found.collect())) == [("a", 1, 8), ("b", 2, 7), ("b", 3, 7)]
