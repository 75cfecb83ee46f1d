"""A table of which one verb goes wrong in a way that the verb can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nightkeep.formats.memory.metadata.snapshot import from_ipc, to_ipc
from nightkeep.model import Candidate, Rewrite, Run, UnitKey
from nightkeep.protocol import OpenTable, Positions, SomeTask


class Wrapped:
    """A table of which one verb fails the way that verb can fail."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class Committing(Wrapped):
    """As Wrapped, for a table whose `commit` goes wrong."""

    @property
    def commits(self) -> Any:
        return replace(self._table.commits, commit=self.commit)

    def commit(self, candidate: Candidate) -> bool:
        return self._table.commits.commit(candidate)


class Unanswered(Committing):
    """The answer to every commit but the first `after` is lost, after it was done or before it was."""

    def __init__(self, table: OpenTable, *, done: bool, after: int = 0) -> None:
        super().__init__(table)
        self._done = done
        self._before = after

    def commit(self, candidate: Candidate) -> bool:
        if self._before:
            self._before -= 1
            return self._table.commits.commit(candidate)
        if self._done:
            self._table.commits.commit(candidate)
        raise OSError("connection reset")


class Overruled(Committing):
    """Someone is always faster, and undone before anyone looks."""

    def commit(self, candidate: Candidate) -> bool:
        return False


class Overtaken(Committing):
    """Someone commits after our last look, once, at our first commit or at one `after` others."""

    def __init__(self, table: OpenTable, append: Callable[[], None], *, after: int = 0) -> None:
        super().__init__(table)
        self._pending = [append]
        self._before = after

    def commit(self, candidate: Candidate) -> bool:
        while self._pending and not self._before:
            self._pending.pop()()
        self._before -= 1
        return self._table.commits.commit(candidate)


class Misinformed(Committing):
    """A commit is done, and said to have found its version there: a request that the network sent twice."""

    def commit(self, candidate: Candidate) -> bool:
        return not self._table.commits.commit(candidate)


class Forgetful(Wrapped):
    """Staging leaves the last unit as it was, and claims all of them."""

    @property
    def commits(self) -> Any:
        return replace(self._table.commits, stage=self._stage)

    def _stage(self, parent: Any, rewrites: Sequence[Rewrite[Any]], run: Run) -> Candidate:
        done = self._table.commits.stage(parent, rewrites[:-1], run)
        return replace(done, units=tuple(rewrite.key for rewrite in rewrites))


class Faulty(Wrapped):
    """Counts of the whole version disagree."""

    @property
    def gate(self) -> Any:
        return replace(self._table.gate, faults=lambda *versions: ("counted 1, expected 2",))


class FaultyUnit(Wrapped):
    """One unit's files break a promise."""

    def __init__(self, table: OpenTable, key: UnitKey) -> None:
        super().__init__(table)
        self._key = key

    @property
    def gate(self) -> Any:
        def unit_faults(base: Any, candidate: Any) -> tuple[str, ...]:
            return ("keys do not ascend",) if base.key == self._key else ()

        return replace(self._table.gate, unit_faults=unit_faults)


class Reading(Wrapped):
    """Nothing goes wrong; `positions` is how many rows were asked for."""

    def __init__(self, table: OpenTable) -> None:
        super().__init__(table)
        self.positions = 0

    @property
    def gate(self) -> Any:
        return replace(self._table.gate, rows=self._rows)

    def _rows(self, unit: Any, positions: Positions) -> Iterator[pa.RecordBatch]:
        self.positions += sum(map(len, positions.values()))
        return self._table.gate.rows(unit, positions)


class Lossy(Wrapped):
    """A table in memory whose rewrite loses the first row of each file, of one unit or of all, and does not say so."""

    def __init__(self, table: OpenTable, key: UnitKey | None = None) -> None:
        super().__init__(table)
        self._key = key

    def rewrite(self, task: SomeTask, run: Run) -> Rewrite[Any]:
        done = self._table.rewrite(task, run)
        return _changed(self._table, done, lambda rows: rows.slice(1)) if self._key in (None, done.key) else done


class Garbled(Wrapped):
    """A table in memory whose rewrite writes one row twice, instead of another one."""

    def rewrite(self, task: SomeTask, run: Run) -> Rewrite[Any]:
        return _changed(
            self._table, self._table.rewrite(task, run), lambda rows: rows.take([0, 0, *range(2, len(rows))])
        )


def _changed(table: Any, done: Any, change: Callable[[pa.Table], pa.Table]) -> Rewrite[Any]:
    (file,) = done.edit.added
    rows = change(from_ipc(table.store.read(file.name)))
    table.store.files[file.name] = data = to_ipc(rows)
    told = replace(file, rows=rows.num_rows, bytes=len(data))
    changed: Rewrite[Any] = replace(done, edit=replace(done.edit, added=(told,)))
    return changed
