"""Fixtures every test may ask for."""

from tests.engines.fixtures import (
    delta_spark,
    iceberg,
    iceberg_java,
    iceberg_rest,
    iceberg_spark,
    iceberg_warehouse,
    lakes,
    paimon_java,
    pypaimon,
)
from tests.spark_fixtures import pytest_configure, spark

__all__ = [
    "delta_spark",
    "iceberg",
    "iceberg_java",
    "iceberg_rest",
    "iceberg_spark",
    "iceberg_warehouse",
    "lakes",
    "paimon_java",
    "pypaimon",
    "pytest_configure",
    "spark",
]
