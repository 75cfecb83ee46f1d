"""Settings -> one Spark session per process, started on first use. Planning and runs without work never start it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

from nightkeep.errors import Interrupted, NeedsSession, Unreachable
from nightkeep.extras import require_packages
from nightkeep.progress import note
from nightkeep.spark.executors import PATIENCE_SECONDS, executors_within
from nightkeep.tasks import Exchange, Mapper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Engine:
    """One Spark session for the whole process: the given one, which is not stopped at the end, or a new one.

    `meanwhile` is called in a thread while a new session starts, to import what its user needs next. `task_modules`
    names what the workers import before their first task. `packages` are those that the work needs beside pyspark: no
    session starts without them. Whoever knows the size of all tables at work sets `stored_bytes` before: the JVM is
    chosen for it. `starts`: without it no session starts, and who asks for one gets NeedsSession.
    `settings` are those of Spark for a new session, above those of the cluster.
    """

    def __init__(
        self,
        *,
        master: str,
        task_memory_bytes: int,
        spark: SparkSession | None = None,
        meanwhile: Callable[[], None] = lambda: None,
        task_modules: Callable[[], Sequence[str]] = tuple,
        packages: Sequence[str] = (),
        starts: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._master, self._task_memory_bytes, self._given = master, task_memory_bytes, spark
        self._open = ExitStack()
        self._started: SparkSession | None = None
        self._spark: SparkSession | None = None
        self._without: Unreachable | None = None
        self._origin: Engine | None = None
        self._starting = Lock()
        self._meanwhile, self._task_modules, self._packages = meanwhile, task_modules, packages
        self._starts, self._settings = starts, dict(settings or {})
        self.stored_bytes: int | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            # This process ends now, and its JVM with it. To stop Spark takes seconds, and makes failures of the work of
            # other threads.
            if self._started is not None:
                self._started.sparkContext.setLogLevel("OFF")
            return
        self._open.close()

    def start(self) -> None:
        """Start the session now, and ask for no executor. A cluster that runs the driver may end one that has no
        session, also one that has nothing to do. Raises UsageError as `spark`."""
        with self._starting:
            self._begin()

    def spark(self) -> SparkSession:
        """The SparkSession. Raises Unreachable if a cluster provides no executor; later calls raise it at once. Raises
        UsageError where pyspark, or a package that the work needs, is not installed."""
        with self._starting:
            return self._session()

    def _session(self) -> SparkSession:
        if self._without is not None:
            raise self._without
        spark = self._begin()
        if self._spark is None and self._origin is None:
            from nightkeep.spark import session  # noqa: PLC0415 -- pyspark

            try:
                with executors_within(spark, float(os.environ.get("NIGHTKEEP_EXECUTOR_SECONDS", PATIENCE_SECONDS))):
                    session.warm_up(spark, modules=self._task_modules())
            except Unreachable as failure:
                self._without = failure
                raise
        self._spark = spark
        return spark

    def _begin(self) -> SparkSession:
        """The session, whether or not it has executors."""
        if not self._starts:
            raise NeedsSession
        require_packages(("pyspark", *self._packages))
        from nightkeep.spark import session  # noqa: PLC0415 -- pyspark

        if self._started is None and self._origin is not None:
            self._started = session.session_beside(self._origin.spark())
        if self._started is None:
            if self._given is None:
                note("starting Spark")
            started = session.spark_session(
                master=self._master,
                app_name="nightkeep",
                task_memory_bytes=self._task_memory_bytes,
                given=self._given,
                stored_bytes=self.stored_bytes,
                meanwhile=self._meanwhile,
                settings=self._settings,
            )
            self._started = self._open.enter_context(started)
        return self._started

    def mapper(self) -> Mapper:
        """A Mapper that runs each item as one Spark task."""
        spark = self.spark()
        from nightkeep.spark.session import SparkMapper  # noqa: PLC0415 -- pyspark

        return SparkMapper(spark)

    def exchange(self) -> Exchange:
        """An Exchange that moves rows through Spark's shuffle."""
        spark = self.spark()
        from nightkeep.spark.exchange import SparkExchange  # noqa: PLC0415 -- pyspark

        return SparkExchange(spark)


def beside(engine: Engine) -> Engine:
    """An engine with a session of its own in the same Spark, for another thread: each has its own settings. It starts
    nothing before its session is asked for."""
    other = Engine(master=engine._master, task_memory_bytes=engine._task_memory_bytes, starts=engine._starts)
    other._origin = engine
    return other
