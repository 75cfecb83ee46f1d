"""A cluster of processes for the tests of this folder, the engines that read its tables, and the table of faults.

The faults take half an hour: `make test-cluster` runs them, by the option `--cluster`.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.cluster.lake import Readers
from tests.cluster.report import Lines
from tests.drivers.airflow_cluster import DAGS, Cluster, serve_cluster
from tests.drivers.airflow_rest import RestError
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.pypaimon_oracle import PyPaimon

_LINES = Lines()


@pytest.fixture(scope="session")
def airflow_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Healthy; this process reaches its store as well."""
    with serve_cluster(tmp_path_factory.mktemp("topology")) as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.store.environment().items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture(autouse=True)
def _no_run_is_left(airflow_cluster: Cluster) -> Iterator[None]:
    """A test that fails leaves the next one an idle cluster."""
    yield
    with suppress(OSError, TimeoutError, RestError):
        rest = airflow_cluster.operator
        for dag_id in DAGS:
            for each in rest.running(dag_id):
                rest.end(dag_id, each)
        airflow_cluster.until_healthy()
        airflow_cluster.until_idle()


@pytest.fixture(scope="session")
def readers(pypaimon: PyPaimon, lakes: Lakes) -> Readers:
    return Readers(pypaimon, lakes)


@pytest.fixture(scope="session")
def lines() -> Lines:
    return _LINES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _LINES.found:
        terminalreporter.section("faults of a cluster")
        for line in _LINES.table():
            terminalreporter.write_line(line)
