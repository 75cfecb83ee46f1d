"""Tables of which one function goes wrong in a way that it can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from nightkeep.formats.memory.metadata.snapshot import from_ipc, to_ipc
from nightkeep.formats.memory.metadata.versions import store_of
from nightkeep.model import Candidate, Rewrite, Run, UnitKey
from nightkeep.protocol import OpenTable, Positions, Show, SomeTask


def committing(table: OpenTable, commit: Callable[[Candidate], bool]) -> OpenTable:
    """The table with another commit."""
    return replace(table, commits=replace(table.commits, commit=commit))


def unanswered(table: OpenTable, *, done: bool, after: int = 0) -> OpenTable:
    """The answer to every commit but the first `after` is lost, after it was done or before it was."""
    answers = [True] * after

    def commit(candidate: Candidate) -> bool:
        if answers:
            answers.pop()
            return table.commits.commit(candidate)
        if done:
            table.commits.commit(candidate)
        raise OSError("connection reset")

    return committing(table, commit)


def overruled(table: OpenTable) -> OpenTable:
    """Someone is always faster, and undone before anyone looks."""
    return committing(table, lambda candidate: False)


def overtaken(table: OpenTable, append: Callable[[], None], *, after: int = 0) -> OpenTable:
    """Someone commits after our last look, once, at our first commit or at one `after` others."""
    pending, first = [append], [True] * after

    def commit(candidate: Candidate) -> bool:
        while pending and not first:
            pending.pop()()
        if first:
            first.pop()
        return table.commits.commit(candidate)

    return committing(table, commit)


def misinformed(table: OpenTable) -> OpenTable:
    """A commit is done, and said to have found its version there: a request that the network sent twice."""
    return committing(table, lambda candidate: not table.commits.commit(candidate))


def forgetful(table: OpenTable) -> OpenTable:
    """Staging leaves the last unit as it was, and claims all of them."""

    def stage(parent: Any, rewrites: Sequence[Rewrite[Any]], run: Run) -> Candidate:
        done = table.commits.stage(parent, rewrites[:-1], run)
        return replace(done, units=tuple(rewrite.key for rewrite in rewrites))

    return replace(table, commits=replace(table.commits, stage=stage))


def faulty(table: OpenTable) -> OpenTable:
    """Counts of the whole version disagree."""
    return replace(table, gate=replace(table.gate, faults=lambda *versions: ("counted 1, expected 2",)))


def faulty_unit(table: OpenTable, key: UnitKey) -> OpenTable:
    """One unit's files break a promise."""

    def unit_faults(base: Any, candidate: Any, positions: Positions, show: Show) -> tuple[str, ...]:
        found = table.gate.unit_faults(base, candidate, positions, show)
        return ("keys do not ascend",) if base.key == key else found

    return replace(table, gate=replace(table.gate, unit_faults=unit_faults))


def counting_reads(table: OpenTable) -> tuple[OpenTable, list[int]]:
    """Nothing goes wrong; the list gets how many rows each read asked for."""
    asked = list[int]()

    def rows(unit: Any, positions: Positions) -> Iterator[pa.RecordBatch]:
        asked.append(sum(map(len, positions.values())))
        return table.gate.rows(unit, positions)

    def unit_faults(base: Any, candidate: Any, positions: Positions, show: Show) -> tuple[str, ...]:
        asked.append(sum(map(len, positions.values())))
        return table.gate.unit_faults(base, candidate, positions, show)

    return replace(table, gate=replace(table.gate, rows=rows, unit_faults=unit_faults)), asked


def lossy(table: OpenTable, key: UnitKey | None = None) -> OpenTable:
    """A table in memory whose rewrite loses the first row of each file, of one unit or of all, and does not say so."""

    def rewrite(task: SomeTask, run: Run) -> Rewrite[Any]:
        done = table.rewrite(task, run)
        return _changed(table, done, lambda rows: rows.slice(1)) if key in (None, done.key) else done

    return replace(table, rewrite=rewrite)


def garbled(table: OpenTable) -> OpenTable:
    """A table in memory whose rewrite writes one row twice, instead of another one."""

    def rewrite(task: SomeTask, run: Run) -> Rewrite[Any]:
        return _changed(table, table.rewrite(task, run), lambda rows: rows.take([0, 0, *range(2, len(rows))]))

    return replace(table, rewrite=rewrite)


def _changed(table: OpenTable, done: Any, change: Callable[[pa.Table], pa.Table]) -> Rewrite[Any]:
    (file,) = done.edit.added
    store = store_of(table.address)
    rows = change(from_ipc(store.read(file.name)))
    store.files[file.name] = data = to_ipc(rows)
    told = replace(file, rows=rows.num_rows, bytes=len(data))
    changed: Rewrite[Any] = replace(done, edit=replace(done.edit, added=(told,)))
    return changed
