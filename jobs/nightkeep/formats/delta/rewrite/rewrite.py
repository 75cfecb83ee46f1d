"""Task -> new files of one partition: packed, clustered, or vectors alone. No version references them yet."""

from __future__ import annotations

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.rewrite.delete import DeleteTask, mark
from nightkeep.formats.delta.rewrite.inputs import DeltaCluster, DeltaPack
from nightkeep.formats.delta.rewrite.persist import VectorTask, persist
from nightkeep.model import Rewrite, Run
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
