"""Engines as fixtures: one process of each serves a whole session."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.drivers.azure_server import AzureContainer, AzureServer, serve_azure
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.glue_server import serve_glue
from tests.drivers.google_server import GoogleBucket, GoogleServer, serve_google
from tests.drivers.hdfs_cluster import HdfsCluster
from tests.drivers.hive_metastore import HiveMetastore, serve_metastore
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.kubernetes_api import KubernetesApi
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.postgres_server import PostgresServer, serve_postgres
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.drivers.s3_server import Bucket, S3Server, serve_s3
from tests.drivers.toolchain import FEW_ROWS
from tests.drivers.yarn_cluster import YarnCluster
from tests.drivers.yarn_spark import SparkOnYarn, install_spark


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    with serve_azure() as server:
        yield server


@pytest.fixture
def azure_container(azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> AzureContainer:
    """A new container, with what a client needs to reach it in the environment."""
    for name, value in azure_server.environment().items():
        monkeypatch.setenv(name, value)
    return azure_server.container()


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    with DeltaSpark(conf=FEW_ROWS) as engine:
        yield engine


@pytest.fixture(scope="session")
def glue() -> Iterator[str]:
    with serve_glue() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def hdfs_cluster() -> Iterator[HdfsCluster]:
    with HdfsCluster() as cluster:
        yield cluster


@pytest.fixture
def hdfs_folder(hdfs_cluster: HdfsCluster) -> str:
    """The location of a folder that is not made yet."""
    return hdfs_cluster.folder()


@pytest.fixture(scope="session")
def google_server() -> Iterator[GoogleServer]:
    with serve_google() as server:
        yield server


@pytest.fixture
def google_bucket(google_server: GoogleServer, monkeypatch: pytest.MonkeyPatch) -> GoogleBucket:
    """A new bucket, with what a client needs to reach it in the environment."""
    for name, value in google_server.environment().items():
        monkeypatch.setenv(name, value)
    return google_server.bucket()


@pytest.fixture(scope="session")
def hive_metastore() -> Iterator[HiveMetastore]:
    with serve_metastore() as server:
        yield server


@pytest.fixture(scope="session")
def iceberg_java() -> Iterator[IcebergJava]:
    with IcebergJava() as engine:
        yield engine


@pytest.fixture(scope="session")
def iceberg_rest() -> Iterator[IcebergRest]:
    with IcebergRest() as engine:
        yield engine


@pytest.fixture(scope="session")
def iceberg_spark() -> Iterator[IcebergSpark]:
    with IcebergSpark(conf=FEW_ROWS) as engine:
        yield engine


@pytest.fixture(scope="session")
def kubernetes_api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as api:
        yield api


@pytest.fixture(scope="session")
def lakes() -> Iterator[Lakes]:
    with Lakes() as engine:
        yield engine


@pytest.fixture(scope="session")
def paimon_java() -> Iterator[PaimonJava]:
    with PaimonJava() as engine:
        yield engine


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with serve_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def pypaimon() -> Iterator[PyPaimon]:
    with PyPaimon() as engine:
        yield engine


_CATALOGS = count()


@pytest.fixture
def iceberg_warehouse(tmp_path: Path) -> Callable[[], Warehouse]:
    """Makes empty SQLite catalogs, each with a name of its own: engines keep catalogs open by name."""

    def make() -> Warehouse:
        number = next(_CATALOGS)
        return Warehouse(f"lake{number}", tmp_path / f"warehouse{number}")

    return make


@pytest.fixture
def iceberg(iceberg_warehouse: Callable[[], Warehouse]) -> Warehouse:
    """An empty SQLite catalog."""
    return iceberg_warehouse()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with serve_s3() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A new bucket, with what a client needs to reach it in the environment."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.bucket()


@pytest.fixture(scope="session")
def spark_on_yarn(hdfs_cluster: HdfsCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOnYarn]:
    with YarnCluster(hdfs_cluster) as cluster:
        yield install_spark(cluster, tmp_path_factory.mktemp("environment"))
