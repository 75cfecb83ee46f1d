"""Task -> new files of one partition, referenced by nothing: packed, clustered, or vectors alone."""

from __future__ import annotations

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack
from nightkeep.formats.delta.rewrite.delete import DeleteTask, mark
from nightkeep.formats.delta.rewrite.persist import VectorTask, persist
from nightkeep.model import Rewrite, Run
from nightkeep.storage import Storage


def rewrite(storage: Storage, task: object, run: Run) -> Rewrite:
    """Do one task; every file it replaces, and every one without rows, is in its edit."""
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
    raise TypeError(f"a task of type {type(task).__name__}, expected one that a rule of Delta's made")
