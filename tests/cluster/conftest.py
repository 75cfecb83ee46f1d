"""A cluster of processes for the tests of this folder, and the engines that read its tables."""

from collections.abc import Iterator

import pytest
from tests.cluster.lake import Readers
from tests.drivers.airflow_cluster import Cluster, serve_cluster
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.pypaimon_oracle import PyPaimon


@pytest.fixture(scope="session")
def airflow_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Healthy; this process reaches its store as well."""
    with serve_cluster(tmp_path_factory.mktemp("topology")) as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.store.environment().items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture(scope="session")
def readers(pypaimon: PyPaimon, lakes: Lakes) -> Readers:
    return Readers(pypaimon, lakes)
