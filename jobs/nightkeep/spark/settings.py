"""Master, memory of a task, what the deployment says -> Spark's settings. Pure: names and texts, no Spark.

What is here are defaults: a name in spark-defaults.conf, in PYSPARK_SUBMIT_ARGS or in the arguments of spark-submit
keeps the deployment's value. This is the one place that decides Spark's log level.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

ATTEMPTS: Final = 3
"""How often Spark tries a task that fails by anything but a NightkeepError, which would only fail again."""

GIB: Final = 1 << 30
_LEAST_OVERHEAD: Final = 384 << 20
_OPTIONS: Final = {
    "--name": "spark.app.name", "--driver-memory": "spark.driver.memory",
    "--executor-memory": "spark.executor.memory", "--executor-cores": "spark.executor.cores",
    "--total-executor-cores": "spark.cores.max",
}  # fmt: skip
"""Options of spark-submit that are settings under another name."""

_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": str(ATTEMPTS),
    # One task is one core: kernels that start threads of their own would fight over it.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
}

_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def defaults(master: str, task_memory_bytes: int, said: Mapping[str, str], *, submitted: bool) -> dict[str, str]:
    """Settings of a session on `master`, without those that the deployment `said`.

    A session that nobody submitted belongs to a command, whose answer is not to drown in warnings; in the log of a
    job they are what tells of cores that do not come. Where nobody submitted, the driver's memory may be set too.
    """
    settings = {**_DEFAULTS, "spark.log.level": "WARN" if submitted else "ERROR"}
    if not is_local(master):
        settings |= _executors(task_memory_bytes, said)
    elif not submitted:
        settings |= {**_LOCAL, "spark.driver.memory": driver_memory(master, task_memory_bytes)}
    return {name: value for name, value in settings.items() if name not in said}


def driver_memory(master: str, task_memory_bytes: int) -> str:
    """The driver's heap: on a local master the joins of a check are made in it, else it only tells others."""
    return f"{max(2 * GIB, task_memory_bytes if is_local(master) else 0) >> 20}m"


def is_local(master: str) -> bool:
    """Whether tasks run on the driver's machine."""
    return re.match(r"local(\[|$)", master) is not None


def said_by_deployment(environ: Mapping[str, str]) -> dict[str, str]:
    """What spark-defaults.conf and PYSPARK_SUBMIT_ARGS say, for a session that nobody submitted."""
    return {**said_by_file(environ), **_arguments(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "")))}


def said_by_file(environ: Mapping[str, str]) -> dict[str, str]:
    """What spark-defaults.conf says: in SPARK_CONF_DIR, or in `conf` below SPARK_HOME."""
    folder = environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if (home := environ.get("SPARK_HOME")) else None)
    file = Path(folder, "spark-defaults.conf") if folder else None
    return _properties(file.read_text(encoding="utf-8").splitlines()) if file is not None and file.is_file() else {}


def _executors(task_memory_bytes: int, said: Mapping[str, str]) -> dict[str, str]:
    """One core for each executor, its heap for tasks of Spark SQL, and as much beside it for tasks in Python.

    A standalone master counts the heap alone.
    """
    cores = int(said.get("spark.executor.cores", 1))
    heap, beside = max(GIB, task_memory_bytes) * cores, max(_LEAST_OVERHEAD, task_memory_bytes * cores)
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{heap >> 20}m",
        "spark.executor.memoryOverhead": f"{beside >> 20}m",
    }


def _properties(lines: Collection[str]) -> dict[str, str]:
    """Lines of Java's properties as Spark's own files have them: a name, a space or `=`, a value."""
    pairs = (re.match(r"\s*([^#!\s=:][^\s=:]*)\s*[=:\s]\s*(.*?)\s*$", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair is not None}


def _arguments(words: list[str]) -> dict[str, str]:
    said = {}
    for option, value in itertools.pairwise(words):
        if option in ("--conf", "-c") and "=" in value:
            name, _, text = value.partition("=")
            said[name] = text
        elif option in _OPTIONS:
            said[_OPTIONS[option]] = value
    return said
