"""The quick suite: every test that starts no process, and so no engine and no Airflow. `make test-quick` runs it.

A new test belongs to it unless the test asks for a fixture of an engine, has the mark `slow`, or stands in a room that
is left out. A test of the quick suite that starts a process fails.
"""

import multiprocessing.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

PROCESSES = frozenset(
    {
        "airflow_database",
        "azure_server",
        "cluster",
        "delta_spark",
        "glue",
        "google_server",
        "hdfs_cluster",
        "hive_metastore",
        "iceberg_java",
        "iceberg_rest",
        "iceberg_spark",
        "kubernetes_api",
        "lakes",
        "paimon_java",
        "postgres",
        "pypaimon",
        "s3_server",
        "spark",
        "spark_on_yarn",
    }
)
"""Fixtures that start a process."""

LEFT_OUT = ("checking", "engines", "object_store", "plugin", "races")
"""Rooms whose tests are about engines, or whose imports alone take seconds (Great Expectations, Airflow)."""

_STARTS = frozenset({"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"})
"""Events that Python announces before it starts a process."""

_HARMLESS = frozenset({"file"})
"""Programs that Python itself asks once about the machine (`platform.architecture`)."""

_TESTS = Path(__file__).parents[1]


class Guard:
    """Fails a test that starts a process while `running` names it."""

    def __init__(self) -> None:
        self.running: str | None = None

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        program = arguments[0] if arguments else event
        if self.running is not None and event in _STARTS and program not in _HARMLESS:
            self.refuse(program)

    def refuse(self, program: object, *_: object) -> NoReturn:
        # No `except Exception` of the code under test catches this.
        pytest.fail(f"{self.running}: expected no process in the quick suite, found {program!r}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.running = item.nodeid
        try:
            return (yield)
        finally:
            self.running = None


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no process")


def start_guard(config: pytest.Config) -> None:
    """Watch over the tests of this process; Python never forgets an audit hook, so each process starts one."""
    guard = Guard()
    sys.addaudithook(guard.hear)
    # The server that `multiprocessing` forks from starts without an event.
    multiprocessing.util.spawnv_passfds = guard.refuse  # type: ignore[assignment]
    config.pluginmanager.register(guard)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what is left out."""
    if config.getoption("quick") and collection_path.parent == _TESTS and collection_path.name in LEFT_OUT:
        return True
    return None


def deselect_slow(config: pytest.Config, items: list[pytest.Item]) -> None:
    quick = [item for item in items if _is_quick(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_quick(item)])
    items[:] = quick


def _is_quick(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None and not PROCESSES & set(getattr(item, "fixturenames", ()))
