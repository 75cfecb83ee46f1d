"""VACUUM by delta-spark of everything that the latest version does not need."""

from pathlib import Path

from tests.engines.delta_spark import DeltaSpark, named

_NOW = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # One task for each of 10,000 partitions, by default: what a small folder does not need.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def vacuum(delta_spark: DeltaSpark, table: Path) -> None:
    with delta_spark.configured(_NOW):
        delta_spark.sql(f"VACUUM {named(table)} RETAIN 0 HOURS")
