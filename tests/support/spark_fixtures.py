"""One Spark session for all tests: starting one takes seconds, and a process can hold only one."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.drivers import class_archive
from tests.drivers.toolchain import FEW_ROWS
from tests.support.disk import never_wait_for_the_disk
from tests.support.quick import start_guard

from nightkeep.spark import session
from nightkeep.spark.session import spark_session
from nightkeep.spark.settings import SESSION


def pytest_configure(config: pytest.Config) -> None:
    """Sessions of this process are of small tables; what is submitted from it runs as Spark's defaults have it."""
    never_wait_for_the_disk()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what it runs in the background deaf to SIGINT, and so would be every process of the tests.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for java in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
        os.environ[java] = " ".join(class_archive.options())
    settings = " ".join(f"--conf {name}={value}" for name, value in FEW_ROWS.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings} pyspark-shell"
    if config.getoption("quick"):
        start_guard(config)
    elif _earns_an_archive(config) and (process := class_archive.building()):
        config.add_cleanup(lambda: _end(process))
    # PySpark leaves the socket that a result came through to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")
    # Great Expectations 1.24 imports them.
    config.addinivalue_line("filterwarnings", "ignore:module 'sre_:DeprecationWarning")


def _earns_an_archive(config: pytest.Config) -> bool:
    """Once for all workers, and not for the few sessions of `make test`."""
    return not hasattr(config, "workerinput") and not config.getoption("without_extended")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {name: FEW_ROWS.get(name, value) for name, value in SESSION.items()}
    with pytest.MonkeyPatch.context() as patch:
        # They are set once more on a session that is found running.
        patch.setattr(session, "SESSION", settings)
        with spark_session(master="local[2]", app_name="nightkeep-tests", task_memory_bytes=1 << 30) as started:
            yield started
