"""Sets that are looked at while others use them: timed, and `before` anything acts on what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa

from nightkeep.sweep.sets import Counted, Sets
from nightkeep.territory import Root, Sweeps, Territory


class WatchedSets:
    """`before` is called once, with the sets themselves, when orphans are first asked for and there are any: after
    every look and guard, before the first file goes."""

    def __init__(
        self, sets: Sets, stage: Callable[[str], AbstractContextManager[None]], before: Callable[[Sets], None]
    ) -> None:
        self.sets, self.counted = sets, 0
        self._stage, self._before = stage, [before]

    def list(self, territory: Territory) -> None:
        with self._stage("list"):
            self.sets.list(territory)

    def reached(self, table: Sweeps, roots: Sequence[Root]) -> None:
        with self._stage("list"):
            self.sets.reached(table, roots)

    def live(self, table: Sweeps, roots: Sequence[Root], *, expected: bool) -> None:
        with self._stage("live"):
            self.sets.live(table, roots, expected=expected)

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> Counted:
        with self._stage("compare"):
            found = self.sets.settle(cutoff_ms=cutoff_ms, named=named)
        self.counted = found.orphans.files
        return found

    def orphans(self) -> Iterator[pa.RecordBatch]:
        # Lazily, as one that is made and not read acts on nothing.
        if self.counted and self._before:
            self._before.pop()(self.sets)
        yield from self.sets.orphans()

    def close(self) -> None:
        self.sets.close()
