"""Environment -> a client of one namenode or nameservice. Each of its calls ends in bounded time.

The client itself waits without end for a namenode that accepts a request and never answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from threading import Thread
from typing import Final, TypeVar

from hdfs_native import Client

from nightkeep.silence import note_silence, patience, why_silent
from nightkeep.storage.hdfs.failures import failure_of, idleness_of, silence_of

T = TypeVar("T")

# A nightly run can wait out a namenode that starts or hands over; after a longer failure the scheduler retries.
ATTEMPTS = 8
FIRST_WAIT_MS = 500
LONGEST_WAIT_MS = 10_000
_TRANSFER_MS: Final = 60_000
"""For an answer of a datanode, as Hadoop's own client waits."""
CALL_SECONDS = 180.0
"""For one call with all of its attempts, to a namenode that has answered before. The first one waits for PATIENCE."""
_ANSWERED: Final = set[str]()
"""Authorities that this process has an answer of."""
_FAILURES: Final = (OSError, RuntimeError, ValueError)
"""What the client raises."""


def client(authority: str) -> Client:
    """The client of `host:port` or of a nameservice. It is made anew if the environment has changed.

    HADOOP_CONF_DIR, else HADOOP_HOME, has the settings of the cluster; HADOOP_USER_NAME is the user without Kerberos.
    Raises as `asked`.
    """
    environment = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("HADOOP_", "KRB5"))))
    try:
        return _client(authority, environment, os.getpid())
    except _FAILURES as failure:
        raise failure_of(f"hdfs://{authority}", authority, failure) from failure


@lru_cache(maxsize=64)
def _client(authority: str, environment: tuple[tuple[str, str], ...], process: int) -> Client:
    waits = {
        "dfs.client.failover.max.attempts": ATTEMPTS,
        "dfs.client.failover.sleep.base.millis": FIRST_WAIT_MS,
        "dfs.client.failover.sleep.max.millis": LONGEST_WAIT_MS,
        "dfs.client.socket-timeout": _TRANSFER_MS,
    }
    return Client(f"hdfs://{authority}", {name: str(value) for name, value in waits.items()})


def asked(subject: str, authority: str, call: Callable[[], T], *, of_bytes: bool = False) -> T:
    """What a call of the client returns. Datanodes answer one `of_bytes`.

    Raises MissingFile, FileExistsError, NotADirectoryError, PermissionError, RefusedTable or another OSError. A call
    that gets no answer may still be carried out later.
    """
    namenode, seconds = f"the namenode at {authority}", _patience(authority)
    if (why := why_silent(namenode)) and not of_bytes:
        raise silence_of(subject, authority, why)
    answer = _called(authority, call)
    try:
        return answer.result(seconds)
    except TimeoutError as failure:
        if answer.done():
            raise failure_of(subject, authority, failure, of_bytes=of_bytes) from failure
        waited = f"within {seconds:g} seconds"
        if of_bytes:
            raise idleness_of(subject, waited) from None
        note_silence(namenode)
        raise silence_of(subject, authority, waited) from None
    except _FAILURES as failure:
        raise failure_of(subject, authority, failure, of_bytes=of_bytes) from failure


def _called(authority: str, call: Callable[[], T]) -> Future[T]:
    """The answer to come. A thread that never ends must not keep the process from ending, and none survives a fork."""
    answer: Future[T] = Future()

    def ask() -> None:
        try:
            answer.set_result(call())
            _ANSWERED.add(authority)
        except _FAILURES as failure:
            answer.set_exception(failure)
        finally:
            # A panic of Rust is no Exception.
            if not answer.done():
                answer.set_exception(RuntimeError("the client ended in a panic"))

    Thread(target=ask, daemon=True).start()
    return answer


def _patience(authority: str) -> float:
    return CALL_SECONDS if authority in _ANSWERED else min(CALL_SECONDS, patience())
