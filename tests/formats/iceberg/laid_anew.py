"""A unit's rows written anew by hand, without rules: a rewrite that replaces all its data files."""

import os

import pyarrow as pa
from tests.support.table_storage import storage_of

from nightkeep.formats.iceberg.data.write import IcebergFileWriter
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import Intent, Operation, Rewrite, Run, TaskCost, View, run_token

NO_COST = TaskCost(0.0, 0.0, 0, "")
NOW_MS = 1_795_000_000_000


def a_run(run_id: str = "night", *, now_ms: int = NOW_MS) -> Run:
    """A new attempt of the run."""
    return Run(run_id, run_token(run_id, Operation.OPTIMIZE), os.urandom(4).hex(), now_ms)


def laid_anew(
    table: IcebergTable, snapshot: IcebergSnapshot, unit: IcebergUnit, run: Run, *, rows_per_file: int = 1 << 30
) -> Rewrite:
    writer = IcebergFileWriter(
        storage_of(table),
        unit.schema,
        IcebergNaming(run, unit.key),
        spec_id=unit.spec_id,
        values=unit.values,
        sequence_number=snapshot.sequence_number,
    )
    batches = map(without_views, table.gate.rows(unit, table.gate.survivors(unit, View.RAW)))
    rows = (pa.Table.from_batches([batch]) for batch in batches)
    files = writer.write(rows, rows_per_file=rows_per_file)
    edit = IcebergEdit(
        planned_sequence=snapshot.sequence_number,
        intent=Intent(Operation.OPTIMIZE),
        removed=unit.files,
        added=tuple(file.file for file in files),
    )
    outputs = tuple(file.name for file in files)
    return Rewrite(unit.key, edit, outputs, sum(file.rows for file in files), 0, (), NO_COST)


def nothing_but_manifests(snapshot: IcebergSnapshot, unit: IcebergUnit) -> Rewrite:
    edit = IcebergEdit(snapshot.sequence_number, Intent(Operation.OPTIMIZE), rewrites_manifests=True)
    return Rewrite(unit.key, edit, (), 0, 0, (), NO_COST)
