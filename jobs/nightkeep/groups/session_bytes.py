"""Tables of a group that were read so far -> the stored bytes of all of them, by which the session's JVM is chosen."""

from __future__ import annotations

from threading import Lock


class SessionBytes:
    """The bytes of a session's tables. A table that was not read yet counts as the average of those that were. Safe for
    threads.

    A session starts with the first table that has work, long before all tables are read. The tables that took
    longest last time are read first, so that the estimate is rarely too small.
    """

    def __init__(self, tables: int) -> None:
        self._tables, self._lock = tables, Lock()
        self._bytes: dict[str, int] = {}

    def add(self, table: str, size: int) -> int:
        """Note the bytes of a table. Returns those of all tables, as far as is known now."""
        with self._lock:
            self._bytes[table] = size
            return sum(self._bytes.values()) * max(self._tables, len(self._bytes)) // len(self._bytes)
