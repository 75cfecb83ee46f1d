"""Task of any kind of Paimon table -> its rewrite. Tables with and without keys have tasks of their own."""

from __future__ import annotations

import pyarrow as pa

from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.rewrite import rewrite as upgrade
from nightkeep.formats.paimon.rewrite.append import rewrite as append
from nightkeep.formats.paimon.rewrite.append.delete import AppendDelete, arrow_schema, count_matching
from nightkeep.formats.paimon.rewrite.append.rewrite import AppendTask
from nightkeep.formats.paimon.rewrite.append.update import AppendUpdate, count_updates
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask
from nightkeep.model import Operation, Rewrite, Run
from nightkeep.storage import Storage

PaimonTask = UpgradeTask | AppendTask


def rewrite(storage: Storage, task: PaimonTask, run: Run) -> Rewrite[BucketEdit]:
    if isinstance(task, UpgradeTask):
        return upgrade.rewrite(storage, task, run)
    return append.rewrite(storage, task, run)


def columns(snapshot: PaimonSnapshot) -> pa.Schema:
    """The columns that a condition on rows may name."""
    return arrow_schema(snapshot.schema)


def matching_rows(storage: Storage, task: PaimonTask) -> int:
    """How many live rows a delete or an update would change. Raises TypeError for any other task."""
    if isinstance(task, AppendUpdate):
        return count_updates(storage, task)
    if not isinstance(task, AppendDelete):
        raise TypeError(f"expected a task of {Operation.DELETE} or {Operation.UPDATE}, found {task!r:.80}")
    return count_matching(storage, task)
