"""Rows of a table whose readers ignore all but the lowest level above 0 that has a key -> those that count."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def lowest_level_only(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows on level 0, and the row of each key on the lowest level above it. `rows` have `unit` and `level`."""
    of_key = Window.partitionBy("unit", *keys)
    lowest = F.min(F.when(F.col("level") > 0, F.col("level"))).over(of_key)
    ranked = rows.withColumn("lowest", lowest)
    return ranked.where((F.col("level") == 0) | (F.col("level") == F.col("lowest"))).drop("lowest")
