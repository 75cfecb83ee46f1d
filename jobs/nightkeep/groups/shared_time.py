"""Wall time of a session -> the seconds of it that each table takes, while several are at work.

Tables at work at once share each second evenly. So the seconds of all tables add up to those of the session, as those
of a prediction do: a budget's time is that of sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_LEAST: Final = 1e-9


class SharedTime:
    """A clock that each table at work slows down for the others. For any threads."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._lock = clock, Lock()
        self._at_work, self._shared, self._last = 0, 0.0, clock()

    @contextmanager
    def at_work(self) -> Iterator[Callable[[], float]]:
        """In the `with` block, a table is at work. Yields a function: the share of the time since then that was its
        own, from 0 to 1."""
        shared, begun = self._moved(1)

        def share() -> float:
            now_shared, now = self._moved(0)
            return (now_shared - shared) / (now - begun) if now - begun > _LEAST else 1.0

        try:
            yield share
        finally:
            self._moved(-1)

    def _moved(self, tables: int) -> tuple[float, float]:
        """The shared time and the wall time now, before as many more tables are at work."""
        with self._lock:
            now = self._clock()
            self._shared += (now - self._last) / max(1, self._at_work)
            self._last = now
            self._at_work += tables
            return self._shared, now
