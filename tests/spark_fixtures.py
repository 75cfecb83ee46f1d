"""One Spark session for all tests: starting one takes seconds, and a process can hold only one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from nightkeep.session import spark_session


def pytest_configure(config: pytest.Config) -> None:
    # PySpark leaves the socket that a result came through to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")
    # Great Expectations 1.24 imports them.
    config.addinivalue_line("filterwarnings", "ignore:module 'sre_:DeprecationWarning")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session(master="local[2]", app_name="nightkeep-tests", task_memory_bytes=1 << 30) as session:
        yield session
