"""A table of which one verb goes wrong in a way that the verb can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nightkeep.formats.memory.metadata import from_ipc, to_ipc
from nightkeep.model import Candidate, Rewrite, Run
from nightkeep.protocol import Table


class Wrapped:
    """A table of which one verb fails the way that verb can fail."""

    def __init__(self, table: Table[Any]) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class Unanswered(Wrapped):
    """The answer to a commit is lost, after it was done or before it was."""

    def __init__(self, table: Table[Any], *, done: bool) -> None:
        super().__init__(table)
        self._done = done

    def commit(self, candidate: Candidate) -> bool:
        if self._done:
            self._table.commit(candidate)
        raise OSError("connection reset")


class Overruled(Wrapped):
    """Someone is always faster, and undone before anyone looks."""

    def commit(self, candidate: Candidate) -> bool:
        return False


class Overtaken(Wrapped):
    """Someone commits after our last look, once."""

    def __init__(self, table: Table[Any], append: Callable[[], None]) -> None:
        super().__init__(table)
        self._pending = [append]

    def commit(self, candidate: Candidate) -> bool:
        while self._pending:
            self._pending.pop()()
        return self._table.commit(candidate)


class Lossy(Wrapped):
    """A table in memory whose rewrite loses the last row of each file, and says nothing of it."""

    def rewrite(self, task: object, run: Run) -> Rewrite:
        done = self._table.rewrite(task, run)
        (file,), store = done.edit.added, self._table.store
        rows = from_ipc(store.read(file.name))
        store.files[file.name] = data = to_ipc(rows.slice(0, rows.num_rows - 1))
        shorter = replace(file, rows=file.rows - 1, bytes=len(data))
        return replace(done, edit=replace(done.edit, added=(shorter,)))
