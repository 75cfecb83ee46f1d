"""A condition on rows -> deletion vectors that hide the matching rows. Data files are not rewritten.

PROTOCOL.md, "Deletion Vectors": a new vector includes the old one's rows, the remove names the old vector, and a file
without live rows is only removed. This is what delta-spark's DELETE writes for a table with vectors
(DeleteCommand.scala).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.sizing import is_gone
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.delta.data.bounds import every_bounds
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import DeltaVectorWriter, read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, Vector
from nightkeep.formats.delta.metadata.naming import vector_folder
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.metadata.struct_stats import row_count
from nightkeep.model import Estimate, Intent, Request, Run
from nightkeep.model.arrow_types import Array
from nightkeep.protocol import Work
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.bounds_condition import may_hold
from nightkeep.sql_text.rows.condition import ColumnRef, Test, columns_of
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.storage import Storage

BATCH_ROWS = 1 << 16
_RESERVED = frozenset({"_metadata", "__delta_internal_is_row_deleted", "_tmp_metadata_row_index"})
_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Delete the rows of the unit's files for which `condition` is true."""

    unit: DeltaUnit
    condition: str
    intent: Intent


def refuse_deletes(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable if rows may not be deleted, or not with new vectors alone; UsageError for a bad condition."""
    settings = {name.lower(): value.lower() for name, value in snapshot.schema.configuration.items()}
    name = snapshot.table.name
    if not snapshot.schema.writes_vectors:
        raise RefusedTable(name, "new deletion vectors are not enabled", "set delta.enableDeletionVectors to true")
    if settings.get("delta.appendonly") == "true":
        raise RefusedTable(name, "it is append-only (delta.appendOnly)", "rows of it may not be deleted")
    if settings.get("delta.enablechangedatafeed") == "true":
        feature = "its change data feed (delta.enableChangeDataFeed) would lack the deleted rows"
        raise RefusedTable(name, feature, "delete with an engine that writes change files")
    _refuse_reserved(snapshot)
    if request.rows is None:
        raise UsageError(f"{name}: expected a condition on the rows to delete, found none")
    rows_where(request.rows, arrow_schema(snapshot.schema))


def _refuse_reserved(snapshot: DeltaSnapshot) -> None:
    """delta-spark resolves names without their case, and cannot read files with vectors if a column has such a name."""
    names = {
        name for field in snapshot.schema.fields for name in (field.name, field.physical) if name.lower() in _RESERVED
    }
    if names:
        feature = f"the column {min(names)} has a name that delta-spark reserves where rows are deleted by vectors"
        raise RefusedTable(snapshot.table.name, feature, "rename the column first")


def delete_rows(snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request) -> Work[DeleteTask] | None:
    """Work on the files that may have matching rows, by their partition and statistics. None if there are none."""
    assert request.rows is not None
    test = rows_where(request.rows, arrow_schema(snapshot.schema))
    live = [file for file in unit.files if not is_gone(file)]
    files = tuple(file for file, may in zip(live, _may_match(test, unit, live), strict=True) if may)
    if not files:
        return None
    task = DeleteTask(
        DeltaUnit(unit.key, unit.partition, unit.stored_partition, files, unit.schema),
        request.rows,
        Intent(request.operation, where=request.rows),
    )
    size = sum(file.bytes for file in files)
    return Work(
        reason=f"{len(files)} of {len(unit.files)} files may hold rows that the condition selects",
        input_files=tuple(file.name for file in files),
        input_bytes=size,
        estimate=Estimate(size, 0, len(files), "matching rows are hidden, no data is rewritten"),
        tasks=(task,),
    )


def mark(storage: Storage, task: DeleteTask, run: Run) -> tuple[DeltaEdit, tuple[str, ...], int]:
    """The edit, the names of the new files of vectors, and the number of live rows that the edit deletes."""
    writer = DeltaVectorWriter(storage, vector_folder(run))
    removed: list[DeltaDataFile] = []
    added: list[Mapping[str, object]] = []
    marked = 0
    for file in task.unit.files:
        reader = DeltaFileReader(storage, task.unit, file)
        before = read_vector(storage, file)
        hidden = before | _matching(reader, task)
        if len(hidden) == len(before):
            continue
        removed.append(file)
        marked += len(hidden) - len(before)
        if len(hidden) < reader.rows:
            added.append(_with_vector(file, writer.add(hidden), reader.rows))
    return DeltaEdit(tuple(removed), tuple(added), task.intent, marked), writer.close(), marked


def count_matching(storage: Storage, task: DeleteTask) -> int:
    """The number of live rows that `mark` would hide. Reads only the condition's columns."""
    count = 0
    for file in task.unit.files:
        hidden = _matching(DeltaFileReader(storage, task.unit, file), task)
        count += len(hidden - read_vector(storage, file))
    return count


def _matching(reader: DeltaFileReader, task: DeleteTask) -> BitMap64:
    """Positions of matching rows, deleted rows included. Reads only the condition's columns."""
    test = rows_where(task.condition, arrow_schema(task.unit.schema))
    positions, start = BitMap64(), 0
    for chunk in reader.batches(tuple(sorted(columns_of(test))), batch_rows=BATCH_ROWS):
        hits = np.flatnonzero(np.asarray(is_true(test, chunk)))
        positions |= BitMap64((hits + start).astype(np.uint64))
        start += chunk.num_rows
    return positions


def _with_vector(file: DeltaDataFile, vector: Vector, rows: int) -> Mapping[str, object]:
    """The add action with the new vector. Row ids stay with their rows.

    The bounds are no longer tight, because they include rows that are now hidden (PROTOCOL.md, "Per-file Statistics").
    """
    kept = {key: value for key, value in file.raw.items() if key != "deletionVector"}
    return {**kept, "dataChange": True, "stats": _wide(file.stats, rows), "deletionVector": vector.descriptor}


def _wide(stats: str | None, rows: int) -> str:
    """The statistics with `tightBounds` false. All other text is kept digit for digit."""
    # Statistics that count no rows are not understood: with a vector, readers need a count.
    parts = _top_level(stats) if stats and row_count(stats) is not None else {}
    parts = {"numRecords": str(rows), **parts, "tightBounds": "false"}
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in parts.items()) + "}"


def _top_level(text: str) -> dict[str, str]:
    """The text of each top-level value by name. Kept as text because numbers may have more digits than a float."""
    texts: dict[str, str] = {}
    at = _next(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _JSON.raw_decode(text, at)
        start = _next(text, at)
        _, at = _JSON.raw_decode(text, start)
        texts[name] = text[start:at]
        at = _next(text, at)
    return texts


def _next(text: str, at: int) -> int:
    while text[at] in " \t\r\n,:":
        at += 1
    return at


def arrow_schema(schema: DeltaSchema) -> pa.Schema:
    """The columns that a condition on rows may name."""
    return pa.schema([(field.name, field.type) for field in schema.fields])


def _may_match(test: Test, unit: DeltaUnit, files: Sequence[DeltaDataFile]) -> list[bool]:
    """For each file, False if its partition or bounds rule out a match, else True."""
    return may_hold(test, len(files), lambda column: _spans(column, unit, files))


def _spans(column: ColumnRef, unit: DeltaUnit, files: Sequence[DeltaDataFile]) -> tuple[Array, Array] | None:
    """The lowest and highest value of each file, cast to the comparison's type. None if there are no bounds."""
    if column.path[0] in unit.partition:
        kind = unit.schema.field(column.path[0]).type
        values = pa.array([unit.partition[column.path[0]]] * len(files), kind).cast(column.type)
        return values, values
    column_bounds = every_bounds(unit.schema, files, [column.path]).get(column.path)
    if column_bounds is None or pa.types.is_floating(column.type):
        # Some writers ignore NaN in the bounds of floats, so those bounds cannot rule out a file.
        return None
    return column_bounds.lows.cast(column.type), column_bounds.highs.cast(column.type)
