"""Task -> new files of one bucket of a table without keys. No version references them yet."""

from __future__ import annotations

from nightkeep.clustering.rewrite_tasks import NO_COST, ClusterTask, PackTask, cluster, pack
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.rewrite.append.delete import AppendDelete, delete
from nightkeep.formats.paimon.rewrite.append.optimize import AppendCluster, AppendPack
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask, prune
from nightkeep.formats.paimon.rewrite.append.update import AppendUpdate, update
from nightkeep.model import Rewrite, Run
from nightkeep.storage import Storage

AppendTask = AppendPack | AppendCluster | PruneTask | AppendDelete | AppendUpdate
"""The tasks that the rules of tables without keys make."""


def rewrite(storage: Storage, task: AppendTask, run: Run) -> Rewrite[BucketEdit]:
    """Do one task. The edits of a unit name every file that it replaces, and every input without rows."""
    match task:
        case PackTask():
            return pack(storage, task, run)
        case ClusterTask():
            return cluster(storage, task, run)
        case PruneTask():
            edit, outputs = prune(storage, task, run)
            return Rewrite(task.bucket.key, edit, outputs, 0, 0, (), NO_COST)
        case AppendDelete():
            edit, outputs, marked = delete(storage, task, run)
            return Rewrite(task.bucket.key, edit, outputs, 0, marked, (), NO_COST)
        case AppendUpdate():
            edit, outputs, changed = update(storage, task, run)
            return Rewrite(task.bucket.key, edit, outputs, changed, changed, (), NO_COST)
