"""Spark, started by the first one who needs it: planning, history and a run without work never do."""

from __future__ import annotations

import importlib
import os
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from nightkeep.errors import Unreachable
from nightkeep.formats import loaded
from nightkeep.spark.executors import PATIENCE_SECONDS, executors_within
from nightkeep.tasks import Exchange, Mapper


class Engine:
    """One Spark session for everything a process does."""

    def __init__(self, *, master: str, task_memory_bytes: int) -> None:
        self._master, self._task_memory_bytes = master, task_memory_bytes
        self._open = ExitStack()
        self._spark: Any = None
        self._without: Unreachable | None = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def spark(self) -> Any:
        """The SparkSession. Raises Unreachable where a cluster gives it no executor, and does not ask again."""
        if self._without is not None:
            raise self._without
        if self._spark is None:
            session = importlib.import_module("nightkeep.spark.session")
            started = session.spark_session(
                master=self._master, app_name="nightkeep", task_memory_bytes=self._task_memory_bytes
            )
            spark = self._open.enter_context(started)
            try:
                with executors_within(spark, float(os.environ.get("NIGHTKEEP_EXECUTOR_SECONDS", PATIENCE_SECONDS))):
                    session.warm_up(spark, also=loaded())
            except Unreachable as failure:
                self._without = failure
                raise
            self._spark = spark
        return self._spark

    def mapper(self) -> Mapper:
        """Tasks as Spark tasks."""
        mapper: Mapper = importlib.import_module("nightkeep.spark.session").SparkMapper(self.spark())
        return mapper

    def exchange(self) -> Exchange:
        """Rows through Spark's shuffle."""
        exchange: Exchange = importlib.import_module("nightkeep.spark.exchange").SparkExchange(self.spark())
        return exchange

    def contents(self) -> Any:
        """The module that compares what a version holds before and after files went; it imports the checker."""
        return importlib.import_module("nightkeep.checking.content_check")

    def checker(self) -> Any:
        """The module of the second opinion; it imports Great Expectations, which costs seconds."""
        return importlib.import_module("nightkeep.checking.check")

    def differ(self) -> Any:
        """The module that compares two versions; Spark alone, without Great Expectations."""
        return importlib.import_module("nightkeep.checking.diff")
