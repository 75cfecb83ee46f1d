"""One task: files of a partition -> a cube, the same rows along a curve."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.clustering.sorting import Sorting, write_sorted
from nightkeep.formats.iceberg.data.write import FileWriter, WrittenFile
from nightkeep.formats.iceberg.metadata.naming import Naming
from nightkeep.formats.iceberg.metadata.schema import TableSchema
from nightkeep.formats.iceberg.rewrite.cluster_columns import chosen_leaves, columns_of
from nightkeep.formats.iceberg.rewrite.inputs import Inputs, PlacedFile
from nightkeep.formats.iceberg.rewrite.layout_tags import clustered_mark
from nightkeep.formats.iceberg.rewrite.live_rows import LiveRows
from nightkeep.formats.iceberg.rewrite.optimize import measuring
from nightkeep.model import Clustering, Run
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """The files become a cube, those without rows are only removed. `clustering` has the table's own names."""

    inputs: Inputs
    clustering: Clustering
    target_bytes: int
    task_bytes: int

    @property
    def sorting(self) -> Sorting[PlacedFile]:
        paths = columns_of(self.inputs.unit.schema).paths(self.clustering)
        return Sorting(self.inputs.files, self.clustering, paths, self.target_bytes, self.task_bytes)

    @property
    def mark(self) -> str:
        return mark_of(self.inputs.unit.schema, self.clustering)


def cluster(storage: Storage, task: ClusterTask, run: Run) -> list[WrittenFile]:
    """Write the rows of the task's files in order, in files near the target."""
    inputs, unit = task.inputs, task.inputs.unit
    writer = writer_of(storage, inputs, run, mark=task.mark)
    rows = LiveRows(storage, inputs)
    return write_sorted(task.sorting, rows, writer, measure=lambda: measuring(unit.schema, unit.spec_id, unit.values))


def writer_of(storage: Storage, inputs: Inputs, run: Run, *, mark: str) -> FileWriter:
    """Writes files of the inputs' partition, in its spec and with the rows' lineage."""
    unit = inputs.unit
    naming, sequence = Naming(run, unit.key, mark=mark), inputs.planned_sequence
    return FileWriter(storage, unit.schema, naming, spec_id=unit.spec_id, values=unit.values, sequence_number=sequence)


def mark_of(schema: TableSchema, clustering: Clustering) -> str:
    """Of files that are clustered so; `clustering` has the table's own names."""
    return clustered_mark([leaf.field.field_id for leaf in chosen_leaves(schema, clustering)], clustering.curve)
