"""Rows of several versions that are read once, against sets of rows."""

from collections import Counter
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nightkeep.spark.shared_files import SHOWN, hidden_at, hidden_where, read_apart, shared, shown_by_some
from nightkeep.spark.stored_files import packed, words_of


@pytest.mark.parametrize("seed", range(20))
def test_files_of_several_versions_have_the_bits_of_all(seed: int) -> None:
    dice = Random(seed)
    sides = [[(dice.randrange(3), dice.choice("abcd")) for _ in range(dice.randrange(8))] for _ in range(3)]
    found = shared(sides, str)
    assert [[(each.unit, each.file) for each in own] for own in found] == sides
    assert all(len({each.number for each in own}) == len(own) for own in found)
    holders: dict[int, int] = {}
    for side, own in enumerate(found):
        for each in own:
            holders[each.number] = holders.get(each.number, 0) | 1 << side
    assert all(each.shown == holders[each.number] for own in found for each in own)
    # As many files as the side that holds a file most often has of it.
    most: Counter[tuple[int, str]] = Counter()
    for held in sides:
        most |= Counter(held)
    assert len(holders) == most.total()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_bits_of_the_versions_that_show_them(spark: SparkSession, seed: int) -> None:
    dice, files, rows_of_file = Random(seed), 3, 200
    held = [dice.randrange(1, 4) for _ in range(files)]
    gone = [{dice.randrange(files * rows_of_file) for _ in range(90)} for _ in range(2)]
    position = packed(F.floor(F.col("id") / rows_of_file), F.col("id") % rows_of_file)
    bits = F.element_at(F.array(*map(F.lit, held)), (F.floor(F.col("id") / rows_of_file) + 1).cast("int"))
    rows = spark.range(files * rows_of_file).select("id", position.alias("position"), bits.alias(SHOWN))
    for side, hidden in enumerate(gone):
        numbers = spark.createDataFrame([(each,) for each in hidden], "id long")
        rows = hidden_at(rows, words_of(numbers, position), side)
    rows = hidden_where(rows, F.when(F.col("id") % 7 == 0, F.lit(None)).otherwise(F.col("id") % 5 == 0), 1)
    shown = {}
    for number in range(files * rows_of_file):
        of_file = held[number // rows_of_file]
        left = [of_file & 1 and number not in gone[0], of_file & 2 and number not in gone[1]]
        left[1] = left[1] and not (number % 5 == 0 and number % 7 != 0)
        if any(left):
            shown[number] = bool(left[0]) + 2 * bool(left[1])
    assert {row["id"]: row[SHOWN] for row in shown_by_some(rows).collect()} == shown


@pytest.mark.slow
def test_versions_that_are_read_apart_have_a_bit_each(spark: SparkSession) -> None:
    sides = [spark.range(2), spark.range(1, 3)]
    assert sorted(map(tuple, read_apart(sides).collect())) == [(0, 1), (1, 1), (1, 2), (2, 2)]
