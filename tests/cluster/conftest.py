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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with serve_cluster(tmp_path_factory.mktemp("topology")) as running:
        yield running


@pytest.fixture(autouse=True)
def _reached_and_idle(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process reaches the store as well. A test that fails leaves the next one an idle cluster."""
    for name, value in cluster.store.environment().items():
        monkeypatch.setenv(name, value)
    yield
    with suppress(OSError, TimeoutError, RestError):
        rest = cluster.operator
        for dag_id in DAGS:
            for each in rest.running(dag_id):
                rest.end(dag_id, each)
        cluster.until_healthy()
        cluster.until_idle()


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
