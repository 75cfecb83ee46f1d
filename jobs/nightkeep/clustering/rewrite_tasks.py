"""Task of packing or clustering: files of a unit -> new files near the target. No version refers to them yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic

from nightkeep.clustering.clustered_files import E, F, FileLayout, Inputs, W
from nightkeep.clustering.columns import Paths
from nightkeep.clustering.even_files import measuring, write_packed
from nightkeep.clustering.order_ranges import KeyedOrder
from nightkeep.clustering.sorting import Sorting, write_sorted
from nightkeep.model import Clustering, Rewrite, Run, TaskCost
from nightkeep.storage import Storage
from nightkeep.storage.overlapped import overlapped

NO_COST: Final = TaskCost(0.0, 0.0, 0, "")
"""The cost of a rewrite before it is measured."""


@dataclass(frozen=True, slots=True)
class PackTask(Generic[F, W, E]):
    """The input files become about `into` new files. Files without rows are only removed."""

    inputs: Inputs[F, W, E]
    into: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class ClusterTask(Generic[F, W, E]):
    """The input files become a cube. Files without rows are only removed.

    `clustering` has the table's own names, for columns at `paths`. With `order`, rows are sorted by it.
    """

    inputs: Inputs[F, W, E]
    clustering: Clustering
    paths: Paths
    target_bytes: int
    task_bytes: int
    order: KeyedOrder | None = None

    @property
    def layout(self) -> FileLayout:
        return FileLayout(self.target_bytes, self.clustering)

    @property
    def sorting(self) -> Sorting[F]:
        files = self.inputs.files
        return Sorting(files, self.clustering, self.paths, self.target_bytes, self.task_bytes, self.order)


def pack(storage: Storage, task: PackTask[F, W, E], run: Run) -> Rewrite[E]:
    """Write the rows of the task's files in their order, in files near the target."""
    inputs, target = task.inputs, task.target_bytes
    with overlapped(storage) as files:
        writer = inputs.writer(files, run, FileLayout(target))
        written = write_packed(inputs.rows(storage), inputs.files, writer, into=task.into, target_bytes=target)
    return rewritten(inputs, written)


def cluster(storage: Storage, task: ClusterTask[F, W, E], run: Run) -> Rewrite[E]:
    """Write the rows of the task's files along the curve, in files near the target."""
    inputs = task.inputs
    with overlapped(storage) as files:
        writer = inputs.writer(files, run, task.layout)
        measure = partial(measuring, inputs, storage)
        written = write_sorted(task.sorting, inputs.rows(storage), writer, measure=measure)
    return rewritten(inputs, written)


def rewritten(inputs: Inputs[F, W, E], files: Sequence[W]) -> Rewrite[E]:
    """The result of a task that replaced all of its files."""
    return replaced(inputs, files, removed=inputs.files)


def replaced(inputs: Inputs[F, W, E], files: Sequence[W], *, removed: Sequence[F]) -> Rewrite[E]:
    """The result of a task, or of a part of it, that wrote `files`. Its edit removes `removed`."""
    outputs, rows = tuple(file.name for file in files), sum(file.rows for file in files)
    return Rewrite(inputs.key, inputs.edit(files, removed=removed), outputs, rows, 0, (), NO_COST)
