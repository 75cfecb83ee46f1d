"""Settings of a session for the length of a block, such as those for queries over few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

FEW_ROWS: Final = 100_000
"""Up to so many rows, compiling a query takes longer than interpreting it does."""
_OF_FEW_ROWS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # The text of every plan, for a page that nobody sees.
    "spark.sql.ui.explainMode": "simple",
}
_FEW_PATHS: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
LISTED_BY_TASKS: Final = {
    _FEW_PATHS: "32",
    # By default each path is a task of its own, which reads Hadoop's settings for it: 30 CPU milliseconds.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
}
"""The sizes of more than a few files are asked for by tasks, as a bucket takes long for each answer."""
LISTED_BY_DRIVER: Final = {_FEW_PATHS: str((1 << 31) - 1)}
"""The driver asks for all sizes, as a local file system gives a thousand answers before a task begins."""


@contextmanager
def changed_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply the settings for the `with` block, then restore the earlier ones."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


@contextmanager
def planned_for(spark: SparkSession, rows: int) -> Iterator[None]:
    """Queries in the `with` block read about so many rows. Their results are the same for any number."""
    with changed_settings(spark, _OF_FEW_ROWS if rows <= FEW_ROWS else {}):
        yield
