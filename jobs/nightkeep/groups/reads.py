"""A policy -> what its table's metadata states, read where it may kill its reader without harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TypeVar

from nightkeep.admission.order import Order
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.children.child_process import ChildProcesses
from nightkeep.model import Run
from nightkeep.policy import EffectivePolicy
from nightkeep.retention.remove import read_metadata
from nightkeep.running.rewrites.table_reading import Reading, read_table
from nightkeep.spark.engine import Engine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads tables in the child processes `apart`, or in this one without any. The engine of the session learns how
    large its tables are."""

    engine: Engine
    apart: ChildProcesses | None = None
    size: SessionBytes = field(default_factory=lambda: SessionBytes(1))

    def table(self, policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading:
        """As `read_table`."""
        reading = self.call(policy, partial(read_table, policy, order, run, plans=plans))
        if reading.planned is not None:
            self.engine.stored_bytes = self.size.add(policy.address.name, sum(reading.planned.base.sizes.bytes))
        return reading

    def metadata(self, policy: EffectivePolicy, order: Order) -> None:
        """Read the metadata that a removal will read in this process. Does nothing without child processes."""
        if self.apart is not None:
            self.call(policy, partial(read_metadata, policy, order))

    def call(self, policy: EffectivePolicy, work: Callable[[], T]) -> T:
        """The result of `work`. Raises what `ChildProcess.call` raises."""
        apart = None if policy.address.format in OF_ONE_PROCESS else self.apart
        return work() if apart is None else apart.call(policy.address.name, work)


class SessionBytes:
    """The bytes of a session's tables, by which its JVM is chosen. A table that was not read yet counts as the
    average of those that were. Safe for threads.

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
