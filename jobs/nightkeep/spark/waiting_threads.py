"""Threads that wait for Spark or for other processes: after an interrupt, nobody waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from nightkeep.errors import STOPS


@contextmanager
def waiting_threads(
    count: int, *, left_after: tuple[type[BaseException], ...] = STOPS, name: str = ""
) -> Iterator[ThreadPoolExecutor]:
    """A pool of `count` threads. The end of the `with` block waits for them, but not after one of `left_after`: their
    Spark jobs may take minutes."""
    threads, waits = ThreadPoolExecutor(count, thread_name_prefix=name), True
    try:
        yield threads
    except left_after:
        waits = False
        raise
    finally:
        threads.shutdown(wait=waits, cancel_futures=not waits)
