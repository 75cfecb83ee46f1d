"""Task -> new files of one partition, referenced by nothing: packed, clustered, or positions of deleted rows alone."""

from __future__ import annotations

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack, rewritten
from nightkeep.formats.iceberg.rewrite.manifest_work import ManifestTask
from nightkeep.formats.iceberg.rewrite.persist import persist
from nightkeep.formats.iceberg.rewrite.persist_plan import PersistTask
from nightkeep.model import Rewrite, Run
from nightkeep.storage import Storage


def rewrite(storage: Storage, task: object, run: Run) -> Rewrite:
    """Do one task; every file it replaces, and every one without rows, is in its edit."""
    match task:
        case PackTask():
            return pack(storage, task, run)
        case ClusterTask():
            return cluster(storage, task, run)
        case ManifestTask():
            return rewritten(task.inputs, ())
        case PersistTask():
            done = persist(storage, task, run)
            return Rewrite(task.unit.key, done.edit, done.outputs, 0, done.marked, done.findings, NO_COST)
    raise TypeError(f"a task of type {type(task).__name__}, expected one that a rule of Iceberg's made")
