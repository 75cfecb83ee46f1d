"""Task -> new files of one partition, referenced by nothing: packed, clustered, or positions of deleted rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.clustering.even_files import write_packed
from nightkeep.formats.iceberg.data.write import WrittenFile
from nightkeep.formats.iceberg.rewrite.cluster import ClusterTask, cluster, writer_of
from nightkeep.formats.iceberg.rewrite.inputs import Inputs
from nightkeep.formats.iceberg.rewrite.layout_tags import packed_mark
from nightkeep.formats.iceberg.rewrite.live_rows import LiveRows
from nightkeep.formats.iceberg.rewrite.manifest_work import ManifestTask
from nightkeep.formats.iceberg.rewrite.optimize import PackTask
from nightkeep.formats.iceberg.rewrite.persist import persist
from nightkeep.formats.iceberg.rewrite.persist_plan import PersistTask
from nightkeep.model import Rewrite, Run, TaskCost
from nightkeep.storage import Storage

_NO_COST = TaskCost(0.0, 0.0, 0, "")


def rewrite(storage: Storage, task: object, run: Run) -> Rewrite:
    """Do one task; every file it replaces, and every one without rows, is in its edit."""
    match task:
        case PackTask():
            return rewritten(task.inputs, _pack(storage, task, run))
        case ClusterTask():
            return rewritten(task.inputs, cluster(storage, task, run))
        case ManifestTask():
            return rewritten(task.inputs, ())
        case PersistTask():
            done = persist(storage, task, run)
            return Rewrite(task.unit.key, done.edit, done.outputs, 0, done.marked, done.findings, _NO_COST)
    raise TypeError(f"a task of type {type(task).__name__}, expected one that a rule of Iceberg's made")


def rewritten(inputs: Inputs, files: Sequence[WrittenFile]) -> Rewrite:
    """What a task that replaced all of its files did."""
    outputs, rows = tuple(file.name for file in files), sum(file.rows for file in files)
    return Rewrite(inputs.unit.key, inputs.edit(files), outputs, rows, 0, (), _NO_COST)


def _pack(storage: Storage, task: PackTask, run: Run) -> Sequence[WrittenFile]:
    inputs = task.inputs
    writer = writer_of(storage, inputs, run, mark=packed_mark(task.target_bytes))
    rows = LiveRows(storage, inputs)
    return write_packed(rows, inputs.files, writer, into=task.into, target_bytes=task.target_bytes)
