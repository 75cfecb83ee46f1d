"""A condition on rows and expressions -> deletion vectors that hide the matching rows, and files with their new rows.

As Spark's UPDATE of a table without keys and with deletion-vectors.enabled (UpdatePaimonTableCommand.scala): vectors
are made of the rows that are read, new files of the rows as they are set, and both go into one commit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.errors import RefusedRows, RefusedTable
from nightkeep.formats.paimon.data.append_reader import AppendFileReader
from nightkeep.formats.paimon.data.append_write import AppendFileWriter
from nightkeep.formats.paimon.data.write import FILE_SOURCE_APPEND
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonField, bucket_key, has_fixed_buckets, keeps_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, TypeRoot
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile
from nightkeep.formats.paimon.rewrite.append.delete import (
    arrow_schema,
    files_to_search,
    live_matches,
    mark,
    refuse_deletes,
    require_in_spark,
)
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.model import Estimate, Intent, Request, Run
from nightkeep.protocol import Work
from nightkeep.sql_text.rows.arrow_expression import with_values
from nightkeep.sql_text.rows.expression import Assignment, UnfitValueError
from nightkeep.sql_text.rows.parse_assignments import assignments, read_columns
from nightkeep.storage import Storage

_PADDED = (TypeRoot.CHAR, TypeRoot.BINARY)


@dataclass(frozen=True, slots=True)
class AppendUpdate:
    """Set columns of the rows of `files`, of the bucket, for which the intent's condition is true."""

    bucket: Bucket
    files: tuple[AppendFile, ...]
    intent: Intent
    sets: tuple[str, ...]
    target_bytes: int


def refuse_updates(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable if rows cannot be updated with vectors, or the check could not know how; UsageError for a bad
    condition or a bad expression."""
    refuse_deletes(snapshot, request)
    found = assignments(request.sets, arrow_schema(snapshot.schema))
    for column in sorted(read_columns(found)):
        require_in_spark(snapshot, column, f"an expression of column {column}")
    for each in found:
        _require_settable(snapshot, snapshot.schema.field(each.column))


def update_rows(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[AppendUpdate] | None:
    """Work on the files that may have matching rows. None if there are none."""
    assert request.rows is not None
    files = files_to_search(snapshot, bucket, request.rows)
    if not files:
        return None
    size = sum(file.bytes for file in files)
    found = assignments(request.sets, arrow_schema(snapshot.schema))
    intent = Intent(request.operation, where=request.rows, sets=tuple((each.column, each.text) for each in found))
    return Work(
        reason=f"{len(files)} of {len(bucket.files)} files may hold rows that the condition selects",
        input_files=tuple(file.name for file in files),
        input_bytes=size,
        estimate=Estimate(size, 0, len(files), "matching rows are hidden, and written anew as they are set"),
        tasks=(AppendUpdate(bucket, files, intent, request.sets, sizes_of(snapshot, request).target),),
    )


def update(storage: Storage, task: AppendUpdate, run: Run) -> tuple[BucketEdit, tuple[str, ...], int]:
    """The edit, the paths of the new files, and the number of rows that it updates.

    Raises RefusedRows for a row whose new value does not exist or does not fit its column.
    """
    bucket, naming = task.bucket, PaimonNaming(run, task.bucket.key)
    # As rows that are appended: after all others.
    first = 1 + max((file.max_sequence for file in bucket.files), default=-1) if _is_ordered(bucket) else 0
    writer = AppendFileWriter(
        storage,
        bucket,
        naming,
        first_sequence=first,
        last_start=sys.maxsize,
        now_ms=run.now_ms,
        source=FILE_SOURCE_APPEND,
    )
    matches = live_matches(storage, bucket, task.files, task.intent)
    written = writer.write_to_size(_new_rows(storage, task, matches), target_bytes=task.target_bytes)
    if not written:
        return BucketEdit(bucket.partition_bytes, bucket.key.bucket or 0, bucket.total_buckets, (), (), None), (), 0
    hidden, paths, marked = mark(storage, bucket, task.files, task.intent, matches, run)
    edit = replace(hidden, added=tuple(file.record for file in written))
    return edit, (*(file.name for file in written), *paths), marked


def count_updates(storage: Storage, task: AppendUpdate) -> int:
    """The number of live rows that `update` would change. Computes their new values. Raises RefusedRows as it does."""
    matches = live_matches(storage, task.bucket, task.files, task.intent)
    return sum(rows.num_rows for rows in _new_rows(storage, task, matches))


def _is_ordered(bucket: Bucket) -> bool:
    return keeps_order(bucket.schemas.current)


def _require_settable(snapshot: PaimonSnapshot, field: PaimonField) -> None:
    name, kind = snapshot.table.name, field.type
    if field.name in snapshot.schema.partition_keys:
        raise RefusedTable(name, f"an update of partition column {field.name} is not handled", "its rows would move")
    if has_fixed_buckets(snapshot.schema) and field.name in bucket_key(snapshot.schema):
        raise RefusedTable(name, f"an update of bucket key {field.name} is not handled", "its rows would move")
    require_in_spark(snapshot, field.name, f"an update of column {field.name}")
    has_length = kind.root is TypeRoot.VARBINARY and kind.length != MAX_LENGTH
    if kind.root in _PADDED or has_length:
        feature = f"an update of column {field.name} of type {kind} is not handled"
        raise RefusedTable(name, feature, "engines differ on values that are shorter or longer")


def _new_rows(storage: Storage, task: AppendUpdate, matches: Mapping[str, BitMap64]) -> Iterator[pa.Table]:
    """The rows at these positions, file by file in order, as they are set."""
    schema = task.bucket.schemas.current
    found = assignments(task.sets, arrow_schema(schema))
    fields = [schema.field(each.column) for each in found]
    for file in task.files:
        for rows in AppendFileReader(storage, task.bucket, file.file).taken(None, matches[file.name]):
            yield _set(rows, found, fields, path=task.bucket.path(file.file))


def _set(rows: pa.Table, found: tuple[Assignment, ...], fields: list[PaimonField], *, path: str) -> pa.Table:
    try:
        changed = with_values(found, rows)
    except UnfitValueError as failure:
        raise RefusedRows(path, str(failure), "add a condition that leaves such rows out") from failure
    for each, field in zip(found, fields, strict=True):
        _require_fits(changed, each, field, path)
    return changed


def _require_fits(changed: pa.Table, each: Assignment, field: PaimonField, path: str) -> None:
    values, advice = changed.column(field.name), "add a condition that leaves such rows out"
    if not field.type.nullable and values.null_count:
        raise RefusedRows(path, f"the new value of {field.name} is NULL, column {field.name} is NOT NULL", advice)
    most = field.type.length
    if field.type.root is TypeRoot.VARCHAR and most is not None and most != MAX_LENGTH:
        longest = pc.max(pc.utf8_length(values)).as_py()
        if longest is not None and longest > most:
            found = f"the new value of {field.name} has {longest} characters, column {field.name} is {field.type}"
            raise RefusedRows(path, found, advice)
