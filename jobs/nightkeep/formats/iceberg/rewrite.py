"""Task -> new files of one partition, referenced by nothing."""

from __future__ import annotations

from nightkeep.formats.iceberg.persist import persist
from nightkeep.formats.iceberg.persist_plan import PersistTask
from nightkeep.model import Rewrite, Run, TaskCost
from nightkeep.storage import Storage

_NO_COST = TaskCost(0.0, 0.0, 0, "")


def rewrite(storage: Storage, task: object, run: Run) -> Rewrite:
    """Do one task; every file it replaces is in its edit."""
    match task:
        case PersistTask():
            done = persist(storage, task, run)
            return Rewrite(task.unit.key, done.edit, done.outputs, 0, done.marked, done.findings, _NO_COST)
    raise TypeError(f"a task of type {type(task).__name__}, expected one that a rule of Iceberg's made")
