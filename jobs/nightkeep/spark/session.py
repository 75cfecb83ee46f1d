"""Settings -> a SparkSession -> a Mapper that runs each item as one task. No other module builds a session."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import re
import sys
import tempfile
import threading
import time
import traceback
import uuid
import zipimport
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark import Broadcast, SparkConf, SparkContext, StatusTracker, cloudpickle
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from nightkeep.environment import SPARK_LOG, needed_elsewhere
from nightkeep.errors import NightkeepError
from nightkeep.interpreter import interpreter
from nightkeep.progress import task_counter
from nightkeep.spark.class_archive import reading_options
from nightkeep.spark.java_found import starting_java
from nightkeep.spark.package import package_path, ship_package
from nightkeep.spark.query_settings import changed_settings, planned_for
from nightkeep.spark.session_start import beside_this, own_interrupts
from nightkeep.spark.settings import ATTEMPTS, SESSION, defaults, given_by_deployment, is_local, jvm_options

T = TypeVar("T")
R = TypeVar("R")
BatchWork = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function that Spark runs on the batches of a partition (mapInArrow)."""


@contextmanager
def spark_session(
    *,
    master: str = "local[*]",
    app_name: str,
    task_memory_bytes: int,
    given: SparkSession | None = None,
    stored_bytes: int | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """The session `given`, else the active one, else another one of this process, else the one of spark-submit, else a
    new one on `master`.

    A new session is stopped at the end. In an existing one only those of `settings.SESSION` change, and they stay
    changed; a session that was `given` gets its own settings back at the end. `meanwhile` is called in a
    thread while a new session starts.

    `local[*]` runs as many tasks as the machine has cores and memory for, with `task_memory_bytes` each, in a JVM that
    suits tables of `stored_bytes`, None if that is unknown. On other masters, each executor is requested with that much
    memory in its heap and as much beside it. Settings of the deployment take precedence: see `spark.settings`.
    Executors of another master get this package as a zip, and the variables that reach stores and catalogs, with each
    task: these are in no setting and no launch script. Their Python is PYSPARK_PYTHON, by default the path of this one;
    in YARN and Kubernetes that of their image or archive. `settings` are those of the policy: of a session that
    spark-submit started, its arguments have them.
    """
    if given is not None:
        with changed_settings(given, SESSION):
            yield given
        return
    active = _running()
    if active is not None:
        for name, value in SESSION.items():
            active.conf.set(name, value)
        yield active
        return
    with beside_this(meanwhile), starting_java():
        spark = _build(master, app_name, task_memory_bytes, stored_bytes, settings or {})
    try:
        # Executors fetch the package with their first task, so the file must exist as long as the session.
        with tempfile.TemporaryDirectory(prefix="nightkeep-package-") as folder:
            if not str(spark.sparkContext.master).startswith("local"):
                ship_package(spark, folder)
                spark.sparkContext.environment.update(needed_elsewhere(os.environ))
            yield spark
    finally:
        spark.stop()


def _running() -> SparkSession | None:
    """The active session of this thread, else the session of the Spark context that runs in this process, else None.

    Each thread has an active session of its own, and most have none. A context that runs all the same is its caller's:
    it is used, and never stopped here.
    """
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()
    return active


def session_beside(spark: SparkSession) -> SparkSession:
    """Another session in the same Spark context, with the settings that every session of ours has."""
    beside = spark.newSession()
    for name, value in SESSION.items():
        beside.conf.set(name, value)
    return beside


def _build(
    master: str, app_name: str, task_memory_bytes: int, stored_bytes: int | None, own: Mapping[str, str]
) -> SparkSession:
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    deployment = _submitted() if submitted else {**given_by_deployment(os.environ), **own}
    # Under spark-submit, its arguments set the master and the name.
    settings = {} if submitted else {"spark.master": _sized(master, task_memory_bytes), "spark.app.name": app_name}
    place = deployment.get("spark.master", master) if submitted else master
    if not os.environ.get("PYSPARK_PYTHON") and not place.startswith(_OWN_PYTHON):
        os.environ["PYSPARK_PYTHON"] = interpreter()
    if is_local(place) and not submitted:
        archive = reading_options(os.environ)
        settings |= package_path() | jvm_options(place, stored_bytes, deployment, os.environ, archive=archive)
    settings |= defaults(place, task_memory_bytes, deployment, submitted=submitted) | SESSION
    if not submitted:
        settings |= own
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with own_interrupts():
        if not submitted and (log := os.environ.get(SPARK_LOG)) and SparkContext._gateway is None:
            _start_java(settings, log)
        return builder.getOrCreate()


def _start_java(settings: Mapping[str, str], log: str) -> None:
    """Start the JVM as pyspark does, with what it prints in a file."""
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    with open(log, "ab") as opened:
        gateway = launch_gateway(conf, {"stderr": opened, "stdout": opened})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)


def _submitted() -> dict[str, str]:
    """The settings of spark-submit, from its arguments and spark-defaults.conf. Its JVM is already running."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _sized(master: str, task_memory_bytes: int) -> str:
    """`local[n, attempts]`, as local mode ignores the setting for attempts. For `*`, n is what the machine allows."""
    local = re.fullmatch(r"local\[(\*|\d+)\]", master)
    if local is None:
        return master
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    fitting = max(1, min(len(os.sched_getaffinity(0)), memory // task_memory_bytes))
    return f"local[{fitting if local[1] == '*' else local[1]},{ATTEMPTS}]"


class SparkMapper:
    """A `tasks.Mapper` that runs each item as exactly one Spark task.

    Items and results are pickled. A NightkeepError of a task is raised here again once all tasks have ended, with its
    traceback as a note. After any other failure Spark tries the task again and then raises its own error.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, work: Callable[[T], R], items: Sequence[T], *, label: str) -> list[R]:
        if not items:
            return []
        sent = self._spark.sparkContext.broadcast((pickled(work), [pickled(item) for item in items]))
        try:
            few = planned_for(self._spark, len(items))
            with few, job(self._spark, label, tasks=len(items)):
                numbers = self._spark.range(0, len(items), 1, len(items))
                tasks = numbers.mapInArrow(_task(sent), "id long, result binary")
                rows = sorted(tasks.collect(), key=lambda row: int(row.id))
        finally:
            sent.destroy()
        return [returned(bytes(row.result)) for row in rows]


@contextmanager
def job(spark: SparkSession, label: str, *, tasks: int) -> Iterator[None]:
    """Spark jobs in the `with` block are named `label`, and their tasks are counted where somebody watches."""
    group = f"{label}-{uuid.uuid4().hex}"
    spark.sparkContext.setJobGroup(group, label)
    try:
        with _counted(spark.sparkContext.statusTracker(), group, tasks):
            yield
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


@contextmanager
def _counted(tracker: StatusTracker, group: str, tasks: int) -> Iterator[None]:
    counter, ended = task_counter(tasks), threading.Event()
    if counter is None:
        yield
        return

    def watch() -> None:
        while not ended.wait(_POLL_SECONDS):
            counter(_tasks_ended(tracker, group))

    watcher = threading.Thread(target=watch, name="nightkeep-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def warm_up(spark: SparkSession, *, modules: Sequence[str] = ()) -> float:
    """Start a Python worker on every core, and import these modules there.

    Returns the seconds that it took. Workers are kept between tasks, so call this before a measurement.
    """
    started = time.perf_counter()
    tasks = [tuple(modules)] * spark.sparkContext.defaultParallelism
    SparkMapper(spark)(_prepare_worker, tasks, label="warm up")
    return time.perf_counter() - started


_OWN_PYTHON: Final = ("yarn", "k8s")
"""Masters whose executors have an image or an archive: a path of this machine is not in it."""
_POLL_SECONDS: Final = 0.2


def _prepare_worker(modules: Sequence[str]) -> None:
    """Import what tasks need, and remove two costs from every task of this worker: most of the 100 ms of an empty task.

    Around each task Spark makes Python collect garbage and read the directories of the archives on its path again,
    Spark's own zips and a jar (importlib.invalidate_caches). Neither is needed: all modules are loaded by now, and they
    are no garbage.
    """
    for module in modules:
        importlib.import_module(module)
    own = os.environ.get("SPARK_HOME")
    finders = sys.path_importer_cache.items()
    archives = [path for path, finder in finders if isinstance(finder, zipimport.zipimporter)]
    for path in archives:
        if own and path.startswith(own):
            del sys.path_importer_cache[path]
            sys.path[:] = [kept for kept in sys.path if kept != path]
    gc.collect()
    gc.freeze()


def _tasks_ended(tracker: StatusTracker, group: str) -> int:
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _task(sent: Broadcast[tuple[bytes, list[bytes]]]) -> BatchWork:
    """The function that Spark runs on each partition: one row in, the number of an item; one row out, its result."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("id")
            results = [outcome(partial(_done, *sent.value, int(number.as_py()))) for number in numbers]
            yield pa.record_batch([numbers, pa.array(results, pa.binary())], ["id", "result"])

    return run


def _done(work: bytes, items: Sequence[bytes], number: int) -> object:
    return pickle.loads(work)(pickle.loads(items[number]))


def outcome(task: Callable[[], object], *, expected: tuple[type[Exception], ...] = (NightkeepError,)) -> bytes:
    """Run the task and pickle its result, or its failure if that is one of `expected`; `returned` is the inverse.

    Any other failure is raised.
    """
    ended: tuple[object, Exception | None, str]
    try:
        ended = (task(), None, "")
    except expected as failure:
        # Return the failure instead of raising it: Spark would try the task again, which cannot succeed.
        ended = (None, failure, traceback.format_exc())
    return pickled(ended)


def pickled(value: object) -> bytes:
    """Pickle a value, including functions and classes that were defined in an interactive session."""
    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def returned(ended: bytes) -> Any:
    """The result in an `outcome`. Raises its failure, with the traceback as a note."""
    result, failure, trace = pickle.loads(ended)
    if failure is not None:
        failure.add_note(f"in a Spark task:\n{trace}")
        raise failure
    return result
