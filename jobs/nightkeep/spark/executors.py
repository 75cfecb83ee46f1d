"""A session on a cluster -> log lines while it has no executor, and an error after a time limit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from nightkeep.errors import Unreachable
from nightkeep.spark.settings import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 600.0
_REPORT_EVERY_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.5


@contextmanager
def executors_within(spark: SparkSession, seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """In the `with` block, cancel jobs after `seconds` without an executor, and raise Unreachable. The watch ends with
    the first executor.

    Spark itself waits forever if other applications hold the cores or if no worker is large enough.
    """
    context = spark.sparkContext
    master = context.master or ""
    if is_local(master):
        yield
        return
    ended, gave_up = threading.Event(), threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(context, seconds, ended, gave_up), name="nightkeep-executors", daemon=True
    )
    watcher.start()
    try:
        yield
    except Exception as failure:
        if gave_up.is_set():
            raise Unreachable(master, f"an executor within {seconds:.0f} s", _needs(context)) from failure
        raise
    finally:
        ended.set()
        watcher.join()


def _watch(context: SparkContext, seconds: float, ended: threading.Event, gave_up: threading.Event) -> None:
    began = reported = time.monotonic()
    while not ended.wait(_POLL_SECONDS) and not _has_executor(context):
        now = time.monotonic()
        if now - reported >= _REPORT_EVERY_SECONDS:
            reported = now
            _log.warning("%s: no executor after %.0f s: %s", context.master, now - began, _needs(context))
        if now - began >= seconds:
            gave_up.set()
            context.cancelAllJobs()
            return


def _has_executor(context: SparkContext) -> bool:
    # The driver is one of the entries.
    return bool(context._jsc.sc().getExecutorMemoryStatus().size() > 1)


def _needs(context: SparkContext) -> str:
    conf = context.getConf()
    cores, memory = conf.get("spark.executor.cores", "all"), conf.get("spark.executor.memory", "1g")
    return (
        f"none of {cores} cores and {memory} of memory; other applications hold the cores (spark.cores.max limits "
        "what one takes), or no worker is that large"
    )
