"""Settings -> one Spark session per process, started on first use. Planning and runs without work never start it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, cast

from nightkeep.errors import Interrupted, Unreachable
from nightkeep.formats import loaded
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest, Content, KeptRow
from nightkeep.model.own_expectations import OwnRequest
from nightkeep.reports.check_report import CheckReport, DiffReport, ExpectationResult
from nightkeep.reports.own_report import OwnReport
from nightkeep.spark.executors import PATIENCE_SECONDS, executors_within
from nightkeep.tasks import Exchange, Mapper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CHECK: Final = "nightkeep.checking.check"


class Checker(Protocol):
    """The module `checking.check`."""

    def check(self, request: CheckRequest, *, spark: SparkSession) -> CheckReport: ...


class AsksExpectations(Protocol):
    """The module `checking.own_expectations`."""

    def expect_own(self, request: OwnRequest, *, spark: SparkSession) -> OwnReport: ...


class Differ(Protocol):
    """The module `checking.diff`."""

    def diff(self, address: Address, version: int, other: int, *, spark: SparkSession) -> DiffReport: ...


class ContentCheck(Protocol):
    """The module `checking.content_check`."""

    def content(
        self, address: Address, *, spark: SparkSession, byte_budget: int, version: int | None = None
    ) -> Content: ...

    def judge(self, before: Content | None, after: Content | None, files: KeptRow) -> Sequence[ExpectationResult]: ...


class Engine:
    """One Spark session for the whole process: the given one, which is not stopped at the end, or a new one.

    With `checks`, the session is for checks among others: their modules, whose import takes seconds, are imported while
    it starts. Whoever knows the size of all tables at work sets `stored_bytes` before: the JVM is chosen for it.
    """

    def __init__(
        self, *, master: str, task_memory_bytes: int, spark: SparkSession | None = None, checks: bool = False
    ) -> None:
        self._master, self._task_memory_bytes, self._given = master, task_memory_bytes, spark
        self._open = ExitStack()
        self._spark: SparkSession | None = None
        self._without: Unreachable | None = None
        self._origin: Engine | None = None
        self._starting = Lock()
        self._meanwhile = (_CHECK,) if checks else ()
        self.stored_bytes: int | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            # This process ends now, and its JVM with it. To stop Spark takes seconds, and makes failures of the work of
            # other threads.
            if self._spark is not None:
                self._spark.sparkContext.setLogLevel("OFF")
            return
        self._open.close()

    def spark(self) -> SparkSession:
        """The SparkSession. Raises Unreachable if a cluster provides no executor; later calls raise it at once."""
        with self._starting:
            return self._session()

    def _session(self) -> SparkSession:
        if self._without is not None:
            raise self._without
        if self._origin is not None and self._spark is None:
            beside = importlib.import_module("nightkeep.spark.session").session_beside
            self._spark = beside(self._origin.spark())
        if self._spark is None:
            session = importlib.import_module("nightkeep.spark.session")
            started = session.spark_session(
                master=self._master, app_name="nightkeep", task_memory_bytes=self._task_memory_bytes, given=self._given,
                stored_bytes=self.stored_bytes, meanwhile=self._meanwhile,
            )  # fmt: skip
            spark: SparkSession = self._open.enter_context(started)
            try:
                with executors_within(spark, float(os.environ.get("NIGHTKEEP_EXECUTOR_SECONDS", PATIENCE_SECONDS))):
                    session.warm_up(spark, also=loaded())
            except Unreachable as failure:
                self._without = failure
                raise
            self._spark = spark
        return self._spark

    def mapper(self) -> Mapper:
        """A Mapper that runs each item as one Spark task."""
        mapper: Mapper = importlib.import_module("nightkeep.spark.session").SparkMapper(self.spark())
        return mapper

    def exchange(self) -> Exchange:
        """An Exchange that moves rows through Spark's shuffle."""
        exchange: Exchange = importlib.import_module("nightkeep.spark.exchange").SparkExchange(self.spark())
        return exchange

    def contents(self) -> ContentCheck:
        """The module that compares a version's content before and after a removal of files. Imports the checker."""
        return cast(ContentCheck, importlib.import_module("nightkeep.checking.content_check"))

    def checker(self) -> Checker:
        """The module of the check. Imports Great Expectations, which takes seconds."""
        return cast(Checker, importlib.import_module(_CHECK))

    def own_expectations(self) -> AsksExpectations:
        """The module that asks what policies expect of rows. Imports Great Expectations, which takes seconds."""
        return cast(AsksExpectations, importlib.import_module("nightkeep.checking.own_expectations"))

    def differ(self) -> Differ:
        """The module that compares two versions. Uses Spark without Great Expectations."""
        return cast(Differ, importlib.import_module("nightkeep.checking.diff"))


def beside(engine: Engine) -> Engine:
    """An engine with a session of its own in the same Spark, for another thread: each has its own settings. It starts
    nothing before its session is asked for."""
    other = Engine(master=engine._master, task_memory_bytes=engine._task_memory_bytes)
    other._origin = engine
    return other
