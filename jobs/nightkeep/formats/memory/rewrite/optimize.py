"""A partition's small files and files with deletes -> one merge task -> the rows of one new file."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.formats.memory.metadata.pending_changes import MergeEdit
from nightkeep.formats.memory.metadata.snapshot import (
    MemoryFile,
    MemorySnapshot,
    MemoryUnit,
    Store,
    deleted_positions,
    from_ipc,
    to_ipc,
)
from nightkeep.formats.memory.metadata.versions import SORTED, store_of
from nightkeep.kernels.bitmap import mask
from nightkeep.model import Address, Estimate, Request, Rewrite, Run, TaskCost, UnitKey
from nightkeep.model.run_names import unit_token
from nightkeep.protocol import Work

TARGET_BYTES = 1 << 20
"""Files below this are merged. Not measured, because a dict has no cost per file."""
_NO_COST = TaskCost(0.0, 0.0, 0, "")


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Files of one partition to merge into one."""

    key: UnitKey
    inputs: tuple[MemoryFile, ...]


def refuse_sorted(table: Address, snapshot: MemorySnapshot, request: Request) -> None:
    """Refuses sorted tables: merging appends files to each other, so the result is not sorted."""
    if SORTED in snapshot.features:
        feature = f"feature {SORTED} is not kept by {request.operation}"
        raise RefusedTable(table.name, feature, "merge its files with its engine")


def worn_files(snapshot: MemorySnapshot, unit: MemoryUnit, request: Request) -> Work[MergeTask] | None:
    """Work that merges small files and files with deletes into one. A single small file is not work."""
    target = request.target_bytes or TARGET_BYTES
    worn = tuple(file for file in unit.files if request.full or file.deleted or file.bytes < target)
    deleted = sum(file.deleted_rows for file in worn)
    if len(worn) < 2 and not deleted:
        return None
    size = sum(file.bytes for file in worn)
    rows = sum(file.rows for file in worn)
    left = size * (rows - deleted) // max(1, rows)
    return Work(
        reason=f"{len(worn)} files small or with deletes, {deleted} deleted rows",
        input_files=tuple(file.name for file in worn),
        input_bytes=size,
        estimate=Estimate(
            size, left, 1, f"{len(worn) - 1} files fewer", more_files=1 - len(worn), more_bytes=left - size
        ),
        tasks=(MergeTask(unit.key, worn),),
    )


def rewrite(table: Address, task: MergeTask, run: Run) -> Rewrite[MergeEdit]:
    """Do one task: one new file, or none if every row is deleted. The file's name is unique to this attempt."""
    store = store_of(table)
    rows, unit = merged(store, task), unit_token(task.key)
    added: tuple[MemoryFile, ...] = ()
    if rows.num_rows:
        data = to_ipc(rows)
        added = (MemoryFile(f"data-{run.token}-{unit}-{run.attempt}.arrow", rows.num_rows, len(data)),)
        store.put(added[0].name, data)
    outputs = tuple(file.name for file in added)
    return Rewrite(task.key, MergeEdit(task.inputs, added), outputs, rows.num_rows, 0, (), _NO_COST)


def merged(store: Store, task: MergeTask) -> pa.Table:
    """The live rows of every input. Computed with a filter, while the gate reads by position."""
    tables = []
    for file in task.inputs:
        hidden = mask(deleted_positions(store, file), file.rows)
        tables.append(from_ipc(store.read(file.name)).filter(pa.array(~hidden)))
    return pa.concat_tables(tables)
