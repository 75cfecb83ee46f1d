"""Settings of a session for the length of a block, such as those for queries over few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from nightkeep.spark.releases import make_active

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


@contextmanager
def changed_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply the settings for the `with` block, then restore the earlier ones."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        # A JVM that has ended has no settings, and must not take with it what was found before.
        with suppress(OSError, Py4JError):
            for name, earlier in before.items():
                if earlier is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, earlier)


@contextmanager
def kept_active() -> Iterator[None]:
    """Keep the active session in the `with` block: a session that makes a frame becomes the active one."""
    before = SparkSession.getActiveSession()
    try:
        yield
    finally:
        if before is not None:
            make_active(before)


@contextmanager
def planned_for(spark: SparkSession, rows: int) -> Iterator[None]:
    """Queries in the `with` block read about so many rows. Their results are the same for any number."""
    with changed_settings(spark, _OF_FEW_ROWS if rows <= FEW_ROWS else {}):
        yield
