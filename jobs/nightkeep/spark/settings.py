"""Master, memory of a task, settings of the deployment -> Spark's settings. Pure: names and texts, no Spark.

These are defaults: a setting in spark-defaults.conf, in PYSPARK_SUBMIT_ARGS or in the arguments of spark-submit keeps
its value. Only this module decides Spark's log level.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

ATTEMPTS: Final = 3
"""How often Spark runs a task that fails. A NightkeepError is not tried again, as it would only fail again."""

GIB: Final = 1 << 30
_LEAST_OVERHEAD: Final = 384 << 20
_OPTIONS: Final = {
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--total-executor-cores": "spark.cores.max",
}
"""Options of spark-submit, and the settings that they stand for."""

_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": str(ATTEMPTS),
    # Each task has one core, so kernels must not start threads of their own.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    # Arrow's own allocator gives every large buffer back at once. A full compaction of 4.8 M rows takes 7.0 CPU seconds
    # with it and 5.9 with the C library's; its first task takes 0.4 s more.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
}

# A run with its check on 2 cores, in CPU seconds, without these options and with them: 30 and 18 for 0.2 MB, 39 and 27
# for 44 MB of 1.6 million rows. Checks of large tables win by the second compiler.
FEW_BYTES: Final = 64 << 20
"""Up to so many stored bytes, a JVM without its second compiler does a table's rewrite and check with less CPU."""
OPTIONS_OF_FEW_BYTES: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:MetaspaceSize=256m",
    "-XX:ReservedCodeCacheSize=240m",
)
"""The space for classes would else begin with 21 MB, and each time that it grows all garbage is collected. That for
compiled code would be 48 MB without the second compiler, which is full after the checks of a hundred tables."""
_JVM_SETTINGS: Final = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
_JVM_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")

_FEW_PATHS: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
LISTED_BY_TASKS: Final = {
    _FEW_PATHS: "32",
    # By default each path is a task of its own, which reads Hadoop's settings for it: 30 CPU milliseconds.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
}
"""The sizes of more than a few files are asked for by tasks, as a bucket takes long for each answer."""
LISTED_BY_DRIVER: Final = {_FEW_PATHS: str((1 << 31) - 1)}
"""The driver asks for all sizes, as a local file system gives a thousand answers before a task begins."""

SESSION: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Enough for a large check, and cheap for a small one, as adaptive execution joins small partitions again.
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The formats allow columns whose names differ in case alone.
    "spark.sql.caseSensitive": "true",
    **LISTED_BY_TASKS,
}
"""Settings that apply in a new session and in an existing one."""

_LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def defaults(master: str, task_memory_bytes: int, given: Mapping[str, str], *, submitted: bool) -> dict[str, str]:
    """Settings of a session on `master`, without those in `stated`, which the deployment has set.

    Without spark-submit, the session belongs to a command: Spark's warnings are turned off, as they would hide the
    answer, and the driver's memory can still be set. In the log of a submitted job, warnings show that no cores come.
    """
    settings = {**_DEFAULTS, "spark.log.level": "WARN" if submitted else "ERROR"}
    if not is_local(master):
        settings |= _executors(task_memory_bytes, given)
    elif not submitted:
        settings |= {**_LOCAL, "spark.driver.memory": driver_memory(master, task_memory_bytes)}
    return {name: value for name, value in settings.items() if name not in given}


def jvm_options(
    master: str,
    stored_bytes: int | None,
    given: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    archive: Sequence[str] = (),
) -> dict[str, str]:
    """The options of the JVM of a session over tables of `stored_bytes`, None if that is unknown: those of few bytes,
    and those by which it reads an `archive` of classes.

    Empty if the deployment sets options of the JVM: with a second collector, no JVM starts.
    """
    few = stored_bytes is not None and stored_bytes <= FEW_BYTES
    has_own = any(name in given for name in _JVM_SETTINGS) or any(environ.get(name) for name in _JVM_VARIABLES)
    options = () if has_own or not is_local(master) else (*(OPTIONS_OF_FEW_BYTES if few else ()), *archive)
    return {"spark.driver.extraJavaOptions": " ".join(options)} if options else {}


def driver_memory(master: str, task_memory_bytes: int) -> str:
    """The driver's heap. On a local master the joins of a check run in it; on others it only coordinates."""
    return f"{max(2 * GIB, task_memory_bytes if is_local(master) else 0) >> 20}m"


def is_local(master: str) -> bool:
    """Whether tasks run on the driver's machine."""
    return re.match(r"local(\[|$)", master) is not None


def given_by_deployment(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in spark-defaults.conf and PYSPARK_SUBMIT_ARGS, for a session without spark-submit."""
    return {**given_by_file(environ), **_arguments(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "")))}


def given_by_file(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in spark-defaults.conf, which is in SPARK_CONF_DIR, or in `conf` below SPARK_HOME."""
    folder = environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if (home := environ.get("SPARK_HOME")) else None)
    file = Path(folder, "spark-defaults.conf") if folder else None
    return _properties(file.read_text(encoding="utf-8").splitlines()) if file is not None and file.is_file() else {}


def _executors(task_memory_bytes: int, given: Mapping[str, str]) -> dict[str, str]:
    """Executors with one core each: a heap for tasks of Spark SQL, and as much memory beside it for tasks in Python.

    A standalone master counts only the heap.
    """
    cores = int(given.get("spark.executor.cores", 1))
    heap, beside = max(GIB, task_memory_bytes) * cores, max(_LEAST_OVERHEAD, task_memory_bytes * cores)
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": f"{heap >> 20}m",
        "spark.executor.memoryOverhead": f"{beside >> 20}m",
    }


def _properties(lines: Collection[str]) -> dict[str, str]:
    """Lines of Java properties as in Spark's own files: a name, a space or `=`, a value."""
    pairs = (re.match(r"\s*([^#!\s=:][^\s=:]*)\s*[=:\s]\s*(.*?)\s*$", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair is not None}


def _arguments(words: list[str]) -> dict[str, str]:
    given = {}
    for option, value in itertools.pairwise(words):
        if option in ("--conf", "-c") and "=" in value:
            name, _, text = value.partition("=")
            given[name] = text
        elif option in _OPTIONS:
            given[_OPTIONS[option]] = value
    return given
