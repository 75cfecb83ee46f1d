"""A partition's small files and files with deletes -> one merge task -> the rows of one new file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.formats.memory.metadata.snapshot import (
    MemoryFile,
    MemorySnapshot,
    MemoryUnit,
    Store,
    deleted_positions,
    from_ipc,
)
from nightkeep.formats.memory.metadata.versions import SORTED
from nightkeep.kernels.bitmap import mask
from nightkeep.model import Estimate, Request, UnitKey
from nightkeep.protocol import Work

TARGET_BYTES = 1 << 20
"""Files below this are merged. Not measured, because a dict has no cost per file."""


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Files of one partition to merge into one."""

    key: UnitKey
    inputs: tuple[MemoryFile, ...]


def refuse_sorted(table: str) -> Callable[[MemorySnapshot, Request], None]:
    """A guard that refuses sorted tables: merging appends files to each other, so the result is not sorted."""

    def refuse(snapshot: MemorySnapshot, request: Request) -> None:
        if SORTED in snapshot.features:
            feature = f"feature {SORTED} is not kept by {request.operation}"
            raise RefusedTable(table, feature, "merge its files with its engine")

    return refuse


def worn_files(snapshot: MemorySnapshot, unit: MemoryUnit, request: Request) -> Work[MergeTask] | None:
    """Work that merges small files and files with deletes into one. A single small file is not work."""
    target = request.target_bytes or TARGET_BYTES
    worn = tuple(file for file in unit.files if request.full or file.deleted or file.bytes < target)
    deleted = sum(file.deleted_rows for file in worn)
    if len(worn) < 2 and not deleted:
        return None
    size = sum(file.bytes for file in worn)
    rows = sum(file.rows for file in worn)
    return Work(
        reason=f"{len(worn)} files small or with deletes, {deleted} deleted rows",
        input_files=tuple(file.name for file in worn),
        input_bytes=size,
        estimate=Estimate(size, size * (rows - deleted) // max(1, rows), 1, f"{len(worn) - 1} files fewer"),
        tasks=(MergeTask(unit.key, worn),),
    )


def merged(store: Store, task: MergeTask) -> pa.Table:
    """The live rows of every input. Computed with a filter, while the gate reads by position."""
    tables = []
    for file in task.inputs:
        hidden = mask(deleted_positions(store, file), file.rows)
        tables.append(from_ipc(store.read(file.name)).filter(pa.array(~hidden)))
    return pa.concat_tables(tables)
