"""Sets in this process -> sets in Spark, once there are more names than this process should hold.

TimedSets are any Sets of which each step is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

from nightkeep.protocol.table_files import OpenFiles, OpenRoot, TableFiles
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import SetCounts, Sets, TooManyNames
from nightkeep.spark.engine import Engine

NAMES_HERE: Final = 2_000_000
"""How many names one process may hold."""


def sets_of(engine: Engine) -> SpillingSets:
    """Sets that start in this process and continue in tasks of the engine's session."""

    def large() -> Sets:
        from nightkeep.retention.orphans.spark_sets import SparkSets  # noqa: PLC0415 -- pyspark

        return SparkSets(engine.spark())

    return SpillingSets(large)


class SpillingSets:
    """The Sets of a table of any size. `large` makes the sets of a table with more names than `limit`.

    The large sets repeat all steps in order: candidates are listed again before any live name is read again, so live
    files stay safe. A root that expired in between ends the sweep with an error.
    """

    def __init__(self, large: Callable[[], Sets], *, limit: int = NAMES_HERE) -> None:
        self._large, self._limit = large, limit
        self._sets: Sets = MemorySets(limit=limit)
        self._done: list[Callable[[Sets], None]] = []

    def list(self, table_files: TableFiles) -> None:
        self._do(lambda sets: sets.list(table_files))

    def reached(self, table: OpenFiles, roots: Sequence[OpenRoot]) -> None:
        self._do(lambda sets: sets.reached(table, roots))

    def live(self, table: OpenFiles, roots: Sequence[OpenRoot], *, expected: bool) -> None:
        self._do(lambda sets: sets.live(table, roots, expected=expected))

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        return self._sets.settle(cutoff_ms=cutoff_ms, named=named)

    def orphans(self) -> Iterator[pa.RecordBatch]:
        return self._sets.orphans()

    def close(self) -> None:
        self._sets.close()
        self._sets, self._done = MemorySets(limit=self._limit), []

    def _do(self, step: Callable[[Sets], None]) -> None:
        self._done.append(step)
        try:
            step(self._sets)
        except TooManyNames:
            self._sets.close()
            self._sets = self._large()
            for earlier in self._done:
                earlier(self._sets)


class TimedSets:
    """The same sets. `stage` records the seconds of each step under its name."""

    def __init__(self, sets: Sets, stage: Callable[[str], AbstractContextManager[None]]) -> None:
        self.sets, self._stage = sets, stage

    def list(self, table_files: TableFiles) -> None:
        with self._stage("list"):
            self.sets.list(table_files)

    def reached(self, table: OpenFiles, roots: Sequence[OpenRoot]) -> None:
        with self._stage("list"):
            self.sets.reached(table, roots)

    def live(self, table: OpenFiles, roots: Sequence[OpenRoot], *, expected: bool) -> None:
        with self._stage("live"):
            self.sets.live(table, roots, expected=expected)

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        with self._stage("compare"):
            return self.sets.settle(cutoff_ms=cutoff_ms, named=named)

    def orphans(self) -> Iterator[pa.RecordBatch]:
        return self.sets.orphans()

    def close(self) -> None:
        self.sets.close()
