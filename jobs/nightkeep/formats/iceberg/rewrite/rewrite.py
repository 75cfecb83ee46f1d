"""Task -> new files of one partition that no version refers to: packed or clustered data, or positional deletes."""

from __future__ import annotations

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack, rewritten
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.rewrite.manifest_work import ManifestTask
from nightkeep.formats.iceberg.rewrite.optimize import IcebergCluster, IcebergPack
from nightkeep.formats.iceberg.rewrite.persist import persist
from nightkeep.formats.iceberg.rewrite.persist_plan import PersistTask
from nightkeep.formats.iceberg.rewrite.respec import RespecTask, respec
from nightkeep.model import Rewrite, Run
from nightkeep.storage import Storage

IcebergTask = IcebergPack | IcebergCluster | RespecTask | ManifestTask | PersistTask
"""The tasks that the rules of Iceberg plan."""


def rewrite(storage: Storage, task: IcebergTask, run: Run) -> Rewrite[IcebergEdit]:
    """Do one task. Its edit lists every file that it replaces, and every file without live rows."""
    match task:
        case PackTask():
            return pack(storage, task, run)
        case ClusterTask():
            return cluster(storage, task, run)
        case RespecTask():
            return respec(storage, task, run)
        case ManifestTask():
            return rewritten(task.inputs, ())
        case PersistTask():
            done = persist(storage, task, run)
            return Rewrite(task.unit.key, done.edit, done.outputs, 0, done.marked, done.findings, NO_COST)
