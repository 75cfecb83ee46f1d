"""Fixtures every test may ask for."""

from tests.airflow_home import airflow_database
from tests.both_ends import pytest_collection_modifyitems, pytest_xdist_make_scheduler
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
    s3_bucket,
    s3_server,
)
from tests.spark_fixtures import pytest_configure, spark

__all__ = [
    "airflow_database",
    "delta_spark",
    "iceberg",
    "iceberg_java",
    "iceberg_rest",
    "iceberg_spark",
    "iceberg_warehouse",
    "lakes",
    "paimon_java",
    "pypaimon",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_xdist_make_scheduler",
    "s3_bucket",
    "s3_server",
    "spark",
]
