"""A unit beyond one task: the verbs of an exchange, with Iceberg's rows and edits."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from nightkeep.clustering import wide_task
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.rewrite.cluster import ClusterTask, writer_of
from nightkeep.formats.iceberg.rewrite.inputs import PlacedFile
from nightkeep.formats.iceberg.rewrite.live_rows import LiveRows
from nightkeep.formats.iceberg.rewrite.optimize import measuring
from nightkeep.formats.iceberg.rewrite.rewrite import rewritten
from nightkeep.model import Rewrite, Run
from nightkeep.protocol import Wide
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class RangedTask:
    """A task and where its rows are cut."""

    task: ClusterTask
    cuts: wide_task.Cuts


def survey(storage: Storage, asked: Wide, source: object) -> wide_task.Survey:
    """Reads the clustering columns, the key columns of deletes, and a batch of all columns."""
    task, files = _of(asked.task, source)
    return wide_task.survey(task.sorting, files, LiveRows(storage, task.inputs), _columns(task))


def ranged(asked: Wide, surveys: Sequence[object]) -> RangedTask:
    assert isinstance(asked.task, ClusterTask)
    return RangedTask(asked.task, wide_task.cut(asked.task.sorting, surveys, parts=asked.parts))


def scatter(storage: Storage, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """(part, bucket, rows with their keys), for as many rows at once as the task may hold."""
    assert isinstance(ranged, RangedTask)
    task, files = _of(ranged.task, source)
    return wide_task.scatter(ranged.cuts, files, LiveRows(storage, task.inputs), _columns(task))


def gather(
    storage: Storage, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
) -> Rewrite:
    """One file of one part. The first part's edit removes what the whole task replaces."""
    assert isinstance(ranged, RangedTask)
    task = ranged.task
    writer = writer_of(storage, task.inputs, run, mark=task.mark)
    done = rewritten(task.inputs, writer.write(wide_task.gathered(ranged.cuts, rows), rows_per_file=sys.maxsize))
    assert isinstance(done.edit, IcebergEdit)
    return done if part == 0 else replace(done, edit=replace(done.edit, removed=()))


def _of(task: object, source: object) -> tuple[ClusterTask, tuple[PlacedFile, ...]]:
    assert isinstance(task, ClusterTask) and isinstance(source, tuple)
    return task, source


def _columns(task: ClusterTask) -> tuple[str, ...]:
    unit = task.inputs.unit
    return measuring(unit.schema, unit.spec_id, unit.values).columns
