"""A condition on rows -> deletion vectors that hide the matching rows. Data files are not rewritten.

What Spark's DELETE writes for a table without keys and with deletion-vectors.enabled: new vectors include the old ones'
rows, and vector files that had a vector of a changed file are replaced (C/deletionvectors/append).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.sizing import is_gone
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.paimon.data.append_reader import AppendFileReader
from nightkeep.formats.paimon.data.columns import value_columns
from nightkeep.formats.paimon.deletes.append_vectors import replace_vectors, vectors_of
from nightkeep.formats.paimon.metadata.batch_read import refuse_scan_options
from nightkeep.formats.paimon.metadata.file_formats import format_of, shifts_times
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, level_formats, option_bool
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile, append_files
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.formats.paimon.rewrite.append.optimize import refuse_keys, refuse_unhandled
from nightkeep.model import Estimate, Intent, Request, Run
from nightkeep.model.arrow_types import Array
from nightkeep.protocol import Work
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.bounds_condition import may_hold
from nightkeep.sql_text.rows.condition import ColumnRef, Test, columns_of
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.storage import Storage

_MICROSECONDS = 6


@dataclass(frozen=True, slots=True)
class AppendDelete:
    """Delete the rows of `files`, of the bucket, for which the intent's condition is true."""

    bucket: Bucket
    files: tuple[AppendFile, ...]
    intent: Intent


def refuse_deletes(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable if rows cannot be hidden in vectors, or the check could not identify them; UsageError for a
    bad condition."""
    name = snapshot.table.name
    refuse_keys(snapshot, request)
    refuse_unhandled(snapshot, request)
    refuse_scan_options(name, snapshot.schema, "remove the option, as the condition is meant for rows that readers see")
    if not option_bool(snapshot.schema, "deletion-vectors.enabled"):
        raise RefusedTable(name, "option deletion-vectors.enabled is not true", "set it to true, for every writer")
    if request.rows is None:
        raise UsageError(f"{name}: expected a condition on the rows to {request.operation}, found none")
    for column in sorted(columns_of(rows_where(request.rows, arrow_schema(snapshot.schema)))):
        require_in_spark(snapshot, column, f"a condition on column {column}")


def require_in_spark(snapshot: PaimonSnapshot, column: str, use: str) -> None:
    """Raises RefusedTable if Spark, for the check, does not have the column's values: no times of day, no nanoseconds,
    and no times that ORC files store shifted by an unknown time zone. It compares nested values as texts."""
    kind = snapshot.schema.field(column).type
    feature = f"{use} of type {kind} is not handled"
    if not _in_spark(kind):
        raise RefusedTable(snapshot.table.name, feature, "Spark, which checks what was changed, has no such type")
    if kind.root is TypeRoot.TIMESTAMP_LTZ and shifts_times(snapshot.schema) and _has_orc(snapshot):
        raise RefusedTable(snapshot.table.name, feature, "times in ORC files depend on the writer's time zone")


def delete_rows(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[AppendDelete] | None:
    """Work on the files that may have matching rows. None if there are none."""
    assert request.rows is not None
    files = files_to_search(snapshot, bucket, request.rows)
    if not files:
        return None
    size = sum(file.bytes for file in files)
    return Work(
        reason=f"{len(files)} of {len(bucket.files)} files may hold rows that the condition selects",
        input_files=tuple(file.name for file in files),
        input_bytes=size,
        estimate=Estimate(size, 0, len(files), "matching rows are hidden, no data is rewritten"),
        tasks=(AppendDelete(bucket, files, Intent(request.operation, where=request.rows)),),
    )


def files_to_search(snapshot: PaimonSnapshot, bucket: Bucket, condition: str) -> tuple[AppendFile, ...]:
    """The files that may have rows for which the condition is true, by their partition and statistics."""
    test = rows_where(condition, arrow_schema(snapshot.schema))
    live = [file for file in append_files(bucket) if not is_gone(file)]
    return tuple(file for file, may in zip(live, _may_match(test, bucket, live), strict=True) if may)


def delete(storage: Storage, task: AppendDelete, run: Run) -> tuple[BucketEdit, tuple[str, ...], int]:
    """The edit, the paths of the new vector files, and the number of live rows that the edit deletes."""
    matches = live_matches(storage, task.bucket, task.files, task.intent)
    return mark(storage, task.bucket, task.files, task.intent, matches, run)


def mark(
    storage: Storage,
    bucket: Bucket,
    files: Sequence[AppendFile],
    intent: Intent,
    matches: Mapping[str, BitMap64],
    run: Run,
) -> tuple[BucketEdit, tuple[str, ...], int]:
    """The edit that hides the rows of `matches`, by file, the paths of the new vector files, and the number of these
    rows. They are live. A file without live rows is removed."""
    marked = [file for file in files if matches[file.name]]
    vectors = vectors_of(storage, bucket, {file.name for file in marked})
    hidden = {file.name: vectors.get(file.name, BitMap64()) | matches[file.name] for file in marked}
    gone = [file for file in marked if len(hidden[file.name]) == file.file.rows]
    fresh = {name: positions for name, positions in hidden.items() if name not in {file.name for file in gone}}
    naming = PaimonNaming(run, bucket.key)
    changed = replace_vectors(storage, bucket, fresh, gone={file.name for file in gone}, naming=naming)
    edit = BucketEdit(
        bucket.partition_bytes,
        bucket.key.bucket or 0,
        bucket.total_buckets,
        tuple(file.file.record for file in gone),
        (),
        None,
        index_removed=changed.removed,
        index_added=changed.added,
        intent=intent,
    )
    return edit, changed.paths, sum(map(len, matches.values()))


def count_matching(storage: Storage, task: AppendDelete) -> int:
    """The number of live rows that `delete` would hide. Reads only the condition's columns and the vectors."""
    return sum(map(len, live_matches(storage, task.bucket, task.files, task.intent).values()))


def live_matches(
    storage: Storage, bucket: Bucket, files: Sequence[AppendFile], intent: Intent
) -> Mapping[str, BitMap64]:
    """Positions of the live rows of each file for which the intent's condition is true."""
    if intent.where is None:
        raise UsageError(f"{intent.operation}: expected a condition on rows, found none")
    vectors = vectors_of(storage, bucket, {file.name for file in files})
    return {
        file.name: _matching(storage, bucket, file, intent.where) - vectors.get(file.name, BitMap64()) for file in files
    }


def arrow_schema(schema: PaimonSchema) -> pa.Schema:
    """The columns that a condition on rows may name."""
    return pa.schema([(field.name, field.type.arrow) for field in schema.fields])


def _matching(storage: Storage, bucket: Bucket, file: AppendFile, condition: str) -> BitMap64:
    """Positions of matching rows of a file, deleted rows included."""
    test = rows_where(condition, arrow_schema(bucket.schemas.current))
    # Without a column there would be no rows to count.
    columns = tuple(sorted(columns_of(test))) or value_columns(bucket)[:1]
    positions, start = BitMap64(), 0
    for chunk in AppendFileReader(storage, bucket, file.file).batches(columns):
        hits = np.flatnonzero(np.asarray(is_true(test, chunk)))
        positions |= BitMap64((hits + start).astype(np.uint64))
        start += chunk.num_rows
    return positions


def _may_match(test: Test, bucket: Bucket, files: list[AppendFile]) -> list[bool]:
    return may_hold(test, len(files), lambda column: _spans(column, bucket, files))


def _spans(column: ColumnRef, bucket: Bucket, files: list[AppendFile]) -> tuple[Array, Array] | None:
    """The lowest and highest value of each file, cast to the comparison's type. None if there are no bounds."""
    field = bucket.schemas.current.field(column.path[0])
    if field.name in bucket.partition:
        values = pa.array([bucket.partition[field.name]] * len(files), field.type.arrow).cast(column.type)
        return values, values
    if pa.types.is_floating(column.type):
        # Writers differ on bounds of NaN and of zeros.
        return None
    bounds = file_bounds(bucket.schemas, [file.file for file in files], [field])[field.name,]
    return bounds.lows.cast(column.type), bounds.highs.cast(column.type)


def _has_orc(snapshot: PaimonSnapshot) -> bool:
    formats = {format_of(file.name) for bucket in snapshot.units for file in bucket.files}
    return "orc" in {*formats, *level_formats(snapshot.schema, 1)}


def _in_spark(kind: PaimonType) -> bool:
    """Whether Spark has values of the type: none of nested types, no times of day, and no nanoseconds."""
    if kind.is_nested:
        return False
    is_instant = kind.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
    return kind.root is not TypeRoot.TIME and not (is_instant and (kind.precision or 0) > _MICROSECONDS)
