"""Fixtures every test may ask for."""

import os

import pytest
from hypothesis import settings
from tests.drivers.fixtures import (
    azure_container,
    azure_server,
    delta_spark,
    glue,
    google_bucket,
    google_server,
    hdfs_cluster,
    hdfs_folder,
    hive_metastore,
    iceberg,
    iceberg_java,
    iceberg_rest,
    iceberg_spark,
    iceberg_warehouse,
    kubernetes_api,
    lakes,
    paimon_java,
    postgres,
    pypaimon,
    s3_bucket,
    s3_server,
    spark_on_yarn,
)
from tests.formats.iceberg.recipe_fixtures import golden, made, make
from tests.support.airflow_home import airflow_database
from tests.support.examples import examples
from tests.support.options import pytest_addoption
from tests.support.quick import pytest_ignore_collect
from tests.support.spark_fixtures import pytest_configure, spark
from tests.support.workers import pytest_collection_modifyitems, pytest_xdist_make_scheduler

from nightkeep.silence import forget_silence

__all__ = [
    "airflow_database",
    "azure_container",
    "azure_server",
    "delta_spark",
    "glue",
    "golden",
    "google_bucket",
    "google_server",
    "hdfs_cluster",
    "hdfs_folder",
    "hive_metastore",
    "iceberg",
    "iceberg_java",
    "iceberg_rest",
    "iceberg_spark",
    "iceberg_warehouse",
    "kubernetes_api",
    "lakes",
    "made",
    "make",
    "paimon_java",
    "postgres",
    "pypaimon",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_ignore_collect",
    "pytest_xdist_make_scheduler",
    "s3_bucket",
    "s3_server",
    "spark",
    "spark_on_yarn",
]

# Tests leave no key in the account's own folder.
os.environ.setdefault("NIGHTKEEP_EVIDENCE_SECRET", "of the tests only")


@pytest.fixture(autouse=True)
def _no_silence() -> None:
    """Servers that one test has silenced are asked again by the next one."""
    forget_silence()


# The time of an example says nothing about a codec or a kernel.
settings.register_profile("nightkeep", deadline=None, max_examples=examples(100))
settings.load_profile("nightkeep")
