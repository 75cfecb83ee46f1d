"""Tables of a group that were read so far -> the stored bytes of all of them, by which the session's JVM is chosen."""

from __future__ import annotations

from threading import Lock


class SessionBytes:
    """The bytes of the tables that were read; each other one of `tables` counts as one of them does on average. For any
    threads.

    A session starts with the first table that has work, long before all tables are read. Those that took longest last
    time are read first, so that a group with large tables rarely passes for one of small ones.
    """

    def __init__(self, tables: int) -> None:
        self._tables, self._lock = tables, Lock()
        self._bytes: dict[str, int] = {}

    def add(self, table: str, size: int) -> int:
        """Note the bytes of a table. Returns those of all tables, as far as is known now."""
        with self._lock:
            self._bytes[table] = size
            return sum(self._bytes.values()) * max(self._tables, len(self._bytes)) // len(self._bytes)
