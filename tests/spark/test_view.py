"""How Spark learns of the files of a store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from nightkeep.spark.settings import LISTED_BY_TASKS
from nightkeep.spark.view import connect, location
from nightkeep.storage import open_storage

FILES = 40


def _jobs_of_a_read(spark: SparkSession, folder: Path) -> int:
    """The jobs that Spark runs until it knows the files of a read of FILES files."""
    for number in range(FILES):
        pq.write_table(pa.table({"n": [number]}), folder / f"{number}.parquet")
    paths = [location(str(folder), f"{number}.parquet") for number in range(FILES)]
    group = f"files of {folder.name}"
    spark.sparkContext.setJobGroup(group, "a read")
    try:
        read = spark.read.schema("n long").parquet(*paths)
        jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        assert sorted(row.n for row in read.collect()) == [*range(FILES)]
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return jobs


def test_no_task_asks_for_the_sizes_of_local_files(spark: SparkSession, tmp_path: Path) -> None:
    connect(spark, open_storage(str(tmp_path)))
    assert _jobs_of_a_read(spark, tmp_path) == 0


def test_tasks_ask_for_the_sizes_of_many_files_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in LISTED_BY_TASKS.items():
        spark.conf.set(name, value)
    assert _jobs_of_a_read(spark, tmp_path) == 1
