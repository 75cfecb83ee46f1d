"""Task -> new files of one partition: packed, clustered, or vectors alone. No version references them yet."""

from __future__ import annotations

import pyarrow as pa

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.delete import DeleteTask, arrow_schema, count_matching, mark
from nightkeep.formats.delta.rewrite.optimize import DeltaCluster, DeltaPack
from nightkeep.formats.delta.rewrite.persist import VectorTask, persist
from nightkeep.model import Operation, Rewrite, Run
from nightkeep.storage import Storage

DeltaTask = DeltaPack | DeltaCluster | VectorTask | DeleteTask
"""The tasks that Delta's rules make."""


def rewrite(storage: Storage, task: DeltaTask, run: Run) -> Rewrite[DeltaEdit]:
    """Do one task. The edit names every file that it replaces, and every input without rows."""
    match task:
        case PackTask():
            return pack(storage, task, run)
        case ClusterTask():
            return cluster(storage, task, run)
        case VectorTask():
            edit, outputs = persist(storage, task, run)
            return Rewrite(task.unit.key, edit, outputs, 0, 0, (), NO_COST)
        case DeleteTask():
            edit, outputs, marked = mark(storage, task, run)
            return Rewrite(task.unit.key, edit, outputs, 0, marked, (), NO_COST)


def columns(snapshot: DeltaSnapshot) -> pa.Schema:
    """The columns that a condition on rows may name."""
    return arrow_schema(snapshot.schema)


def matching_rows(storage: Storage, task: DeltaTask) -> int:
    """How many live rows a delete would hide. Raises TypeError for any other task."""
    if not isinstance(task, DeleteTask):
        raise TypeError(f"expected a task of {Operation.DELETE}, found {task!r:.80}")
    return count_matching(storage, task)
