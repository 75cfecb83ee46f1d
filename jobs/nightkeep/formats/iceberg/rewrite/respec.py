"""Files of an older partition spec -> the same rows in partitions of the current spec. Only where it is asked for.

A unit moves whole, in tasks that each hold some of its files. Each row goes to the partition that the transforms of the
current spec give. New files state no order and no layout: the next run packs, sorts or clusters them where they are.
They are named by the unit whose rows they have. Deletes of the unit are applied. New files get the sequence number of
the plan: a newer equality delete of either partition is a conflict, as it would not apply at both places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nightkeep.clustering.even_files import CountingStorage
from nightkeep.clustering.rewrite_tasks import replaced
from nightkeep.clustering.sizing import is_gone, total_live_bytes
from nightkeep.clustering.tuning import DECODED
from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.data.partitions import partition_rows
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, WrittenIcebergFile
from nightkeep.formats.iceberg.metadata.manifest_schema import unwritten_type
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.order_columns import column_of
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, IcebergInputs
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Estimate, Request, Rewrite, Run
from nightkeep.model.counted import counted
from nightkeep.protocol import Work
from nightkeep.storage import Storage
from nightkeep.storage.overlapped import overlapped

_SHARE: Final = 4
"""A task takes as many bytes of files as, decoded, are this part of its memory: rows are held twice."""


@dataclass(frozen=True, slots=True)
class RespecTask:
    """The rows of the input files move to the partitions of spec `spec_id`, in files near the target."""

    inputs: IcebergInputs
    spec_id: int
    target_bytes: int


def refuse_respec(snapshot: IcebergSnapshot, request: Request) -> None:
    """Raises RefusedTable for a current spec whose partitions we do not write."""
    schema = snapshot.schema
    if not request.respec:
        return
    unwritten = unwritten_type(schema, schema.default_spec_id)
    if unwritten is not None:
        raise unwritten
    for field in schema.spec(schema.default_spec_id).fields:
        if column_of(schema, field.source_id) is None and str(field.transform) != "void":
            feature = f"partition field {field.name} of the current spec, whose column the table has no longer"
            raise RefusedTable(schema.table, feature, "leave out --spec, or drop the field from the spec")


def respec_files(snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request) -> Work[RespecTask] | None:
    """Work on all files of a unit of an older spec, if the request asks for it."""
    current = snapshot.schema.default_spec_id
    if not request.respec or unit.spec_id == current:
        return None
    files = LAYOUT.files(unit)
    if not files:
        return None
    sizes = sizes_of(snapshot, request)
    live = [file for file in files if not is_gone(file)]
    bins = list(_bins(files, max(1, request.task_bytes // (DECODED * _SHARE))))
    size = sum(file.bytes for file in files)
    written = total_live_bytes(live)
    after = max(1, -(-written // sizes.target))
    return Work(
        reason=f"{counted(len(files), 'file')} of partition spec {unit.spec_id}, expected the current one, {current}",
        input_files=tuple(file.name for file in files),
        input_bytes=size,
        estimate=Estimate(
            size,
            written,
            after,
            "filters by the current partitions skip files",
            more_files=after - len(files),
            more_bytes=written - size,
        ),
        tasks=tuple(
            RespecTask(IcebergInputs.of(snapshot, unit, some, request), current, sizes.target) for some in bins
        ),
    )


def respec(storage: Storage, task: RespecTask, run: Run) -> Rewrite[IcebergEdit]:
    """Write the rows of the task's files to partitions of the current spec."""
    inputs = task.inputs
    with overlapped(storage) as files:
        written = list(_written(storage, files, task, run))
    return replaced(inputs, written, removed=inputs.files)


def _written(storage: Storage, files: Storage, task: RespecTask, run: Run) -> Iterator[WrittenIcebergFile]:
    inputs, schema = task.inputs, task.inputs.unit.schema
    naming = IcebergNaming(run, inputs.key)
    nowhere: Storage = CountingStorage("")  # type: ignore[assignment]
    columns = _writer(nowhere, task, naming, ()).columns
    held = [rows for rows in inputs.rows(storage).batches(inputs.files, columns) if rows.num_rows]
    if not held:
        return
    rows = pa.concat_tables(held).combine_chunks()
    held.clear()
    for partition in partition_rows(rows, schema.current, schema.spec(task.spec_id)):
        own = rows if partition.is_everything else rows.take(partition.rows)
        yield from _writer(files, task, naming, partition.values).write([own], target_bytes=task.target_bytes)


def _writer(storage: Storage, task: RespecTask, naming: IcebergNaming, values: Sequence[object]) -> IcebergFileWriter:
    schema, sequence = task.inputs.unit.schema, task.inputs.planned_sequence
    return IcebergFileWriter(storage, schema, naming, spec_id=task.spec_id, values=values, sequence_number=sequence)


def _bins(files: Sequence[PlacedFile], most: int) -> Iterator[Sequence[PlacedFile]]:
    """Files in their order, so many bytes at a time, at least one."""
    some: list[PlacedFile] = []
    for file in files:
        if some and sum(each.bytes for each in some) + file.bytes > most:
            yield some
            some = []
        some.append(file)
    if some:
        yield some
