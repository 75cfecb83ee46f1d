"""Task -> new files of one partition, referenced by nothing: packed, clustered, or vectors alone."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.clustering.even_files import write_packed
from nightkeep.formats.delta.data.write import WrittenFile
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.rewrite.cluster import ClusterTask, cluster, writer_of
from nightkeep.formats.delta.rewrite.delete import DeleteTask, mark
from nightkeep.formats.delta.rewrite.live_rows import LiveRows
from nightkeep.formats.delta.rewrite.optimize import PackTask, packed_tag
from nightkeep.formats.delta.rewrite.persist import VectorTask, persist
from nightkeep.model import Rewrite, Run, TaskCost
from nightkeep.storage import Storage

_NO_COST = TaskCost(0.0, 0.0, 0, "")


def rewrite(storage: Storage, task: object, run: Run) -> Rewrite:
    """Do one task; every file it replaces, and every one without rows, is in its edit."""
    match task:
        case PackTask():
            return rewritten(task, _pack(storage, task, run))
        case ClusterTask():
            return rewritten(task, cluster(storage, task, run))
        case VectorTask():
            edit, outputs = persist(storage, task, run)
            return Rewrite(task.unit.key, edit, outputs, 0, 0, (), _NO_COST)
        case DeleteTask():
            edit, outputs, marked = mark(storage, task, run)
            return Rewrite(task.unit.key, edit, outputs, 0, marked, (), _NO_COST)
    raise TypeError(f"a task of type {type(task).__name__}, expected one that a rule of Delta's made")


def rewritten(task: PackTask | ClusterTask, files: Sequence[WrittenFile]) -> Rewrite:
    """What a task that replaced all files of its unit did."""
    edit = DeltaEdit(task.unit.files, tuple(file.add for file in files), task.intent)
    outputs, rows = tuple(file.name for file in files), sum(file.rows for file in files)
    return Rewrite(task.unit.key, edit, outputs, rows, 0, (), _NO_COST)


def _pack(storage: Storage, task: PackTask, run: Run) -> Sequence[WrittenFile]:
    unit = task.unit
    writer = writer_of(storage, unit, run, tags=packed_tag(run.token, task.target_bytes))
    rows = LiveRows(storage, unit)
    return write_packed(rows, unit.files, writer, into=task.files, target_bytes=task.target_bytes)
