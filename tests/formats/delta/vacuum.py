"""VACUUM by delta-spark of everything that the latest version does not need."""

from pathlib import Path

from tests.drivers.delta_spark import DeltaSpark, named

SMALL = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "2"}
"""One task for each of 10,000 partitions, by default: what a small folder does not need."""
_NOW = {**SMALL, "spark.databricks.delta.retentionDurationCheck.enabled": "false"}


def vacuum(delta_spark: DeltaSpark, table: Path) -> None:
    with delta_spark.configured(_NOW):
        delta_spark.sql(f"VACUUM {named(table)} RETAIN 0 HOURS")
