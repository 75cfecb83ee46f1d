"""Sets -> the same sets, with the seconds of each step recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from nightkeep.protocol.table_files import OpenFiles, OpenRoot, TableFiles
from nightkeep.retention.orphans.sets import SetCounts, Sets


class TimedSets:
    """`stage` records the seconds of each step under its name."""

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
