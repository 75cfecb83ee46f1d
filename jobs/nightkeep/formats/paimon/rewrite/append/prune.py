"""Data files that a unit's tasks replace -> new vector files without their vectors. A task beside the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from nightkeep.formats.paimon.deletes.append_vectors import replace_vectors
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.model import Run
from nightkeep.protocol import Work
from nightkeep.storage import Storage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PruneTask:
    """Drop the vectors of the data files `gone`, which other tasks of the unit replace.

    A vector file may have vectors of files that different tasks replace, so one task does it for all of them.
    """

    bucket: Bucket
    gone: frozenset[str]


def with_pruning(work: Work[T] | None, bucket: Bucket) -> Work[T | PruneTask] | None:
    """The work, and the task that prunes the vectors of its input files, if they have any."""
    if work is None:
        return None
    gone = frozenset(work.input_files)
    tasks: tuple[T | PruneTask, ...] = work.tasks
    if any(where.data_file in gone for where in bucket.vectors):
        tasks = (*tasks, PruneTask(bucket, gone))
    return Work(work.reason, work.input_files, work.input_bytes, work.estimate, tasks, work.together)


def prune(storage: Storage, task: PruneTask, run: Run) -> tuple[BucketEdit, tuple[str, ...]]:
    """The edit, and the paths of the new vector files."""
    bucket, naming = task.bucket, PaimonNaming(run, task.bucket.key)
    files = replace_vectors(storage, bucket, {}, gone=task.gone, naming=naming)
    edit = BucketEdit(bucket.partition_bytes, bucket.key.bucket or 0, bucket.total_buckets, (), (), None)
    return replace(edit, index_removed=files.removed, index_added=files.added), files.paths
