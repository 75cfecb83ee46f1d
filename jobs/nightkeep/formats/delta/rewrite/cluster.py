"""One task: files of a partition -> a cube, the same rows along a curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from nightkeep.clustering.even_files import Forgotten
from nightkeep.clustering.sorting import Sorting, write_sorted
from nightkeep.formats.delta.data.write import FileWriter, WrittenFile
from nightkeep.formats.delta.metadata.naming import Naming
from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaUnit
from nightkeep.formats.delta.rewrite.cluster_columns import columns_of
from nightkeep.formats.delta.rewrite.layout_tags import cluster_tag
from nightkeep.formats.delta.rewrite.live_rows import LiveRows
from nightkeep.model import Clustering, Intent, Run
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """The unit's files become a cube, those without rows are only removed. `clustering` has the table's own names."""

    unit: DeltaUnit
    clustering: Clustering
    target_bytes: int
    task_bytes: int
    intent: Intent

    @property
    def sorting(self) -> Sorting[DataFile]:
        paths = columns_of(self.unit.schema).paths(self.clustering)
        return Sorting(self.unit.files, self.clustering, paths, self.target_bytes, self.task_bytes)

    def tags(self, run: Run) -> Mapping[str, str]:
        """Those of its cube."""
        return cluster_tag(self.clustering, run.token, self.unit.key)


def cluster(storage: Storage, task: ClusterTask, run: Run) -> list[WrittenFile]:
    """Write the rows of the task's files in order, in files near the target."""
    writer = writer_of(storage, task.unit, run, tags=task.tags(run))
    return write_sorted(task.sorting, LiveRows(storage, task.unit), writer, measure=lambda: measuring(task.unit))


def writer_of(storage: Storage, unit: DeltaUnit, run: Run, *, tags: Mapping[str, str]) -> FileWriter:
    naming = Naming(run, unit.key)
    return FileWriter(storage, unit.schema, naming, unit.stored_partition, now_ms=run.now_ms, tags=tags)


def measuring(unit: DeltaUnit) -> FileWriter:
    """A writer whose files tell their size and are forgotten."""
    return writer_of(cast(Storage, Forgotten("")), unit, Run("", "", "", 0), tags={})
