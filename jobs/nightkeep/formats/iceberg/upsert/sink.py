"""Table and batch of changes -> refusals, the target of its writers, and one commit.

A batch is committed once: its id is in its snapshot's summary, and a batch whose id is among the ancestors of main
writes nothing. A batch has no conflict with other commits: its equality deletes apply to rows committed meanwhile, and
its position deletes are for its own files only.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from nightkeep.errors import EvidenceError, RefusedTable, UnknownOutcome, UsageError
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.commit import commit
from nightkeep.formats.iceberg.commit.commits import commits_of
from nightkeep.formats.iceberg.metadata.content_files import FileContent, NewFile
from nightkeep.formats.iceberg.metadata.own_format import require_iceberg_only
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN, ancestors, head, summary_of
from nightkeep.formats.iceberg.metadata.versions import read_version
from nightkeep.formats.iceberg.upsert.batch import BATCH_PROPERTY, ChangeBatch, ChangeMode, Distribution
from nightkeep.formats.iceberg.upsert.writer import WriterTarget, WrittenChanges
from nightkeep.model import Address, Run
from nightkeep.model.version import __version__

MAX_ATTEMPTS: Final = 20
"""Attempts to commit. An attempt fails only if another writer commits first."""
_NAMESPACE: Final = uuid.UUID("6a8e32b2-6f0c-4d0b-9a55-6e1ac3fd4b0e")
"""The namespace of operation ids, which are made from table and batch id."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The snapshot of a batch. `replayed`: it was committed earlier. `seconds` by step, summed over all writers."""

    snapshot_id: int
    replayed: bool
    rows: int = 0
    files: Mapping[str, int] = field(default_factory=dict, hash=False)
    seconds: Mapping[str, float] = field(default_factory=dict, hash=False)


def find_applied(handle: TableHandle, batch: ChangeBatch) -> Applied | None:
    """The batch's snapshot if it is an ancestor of main, else None. An expired snapshot is not found."""
    metadata, location = handle.load()
    table_head = head(metadata, subject=location)
    for version in ancestors(metadata, table_head.current, subject=location):
        if summary_of(table_head.snapshots[version], subject=location).get(BATCH_PROPERTY) == batch.batch_id:
            return Applied(version, replayed=True)
    return None


def target_of(handle: TableHandle, snapshot: IcebergSnapshot, batch: ChangeBatch) -> WriterTarget:
    """The target of the batch's writers. Raises RefusedTable and UsageError before any data is read or written."""
    require_iceberg_only(snapshot.table.name, handle.storage, snapshot.metadata)
    if handle.branch != MAIN:
        raise RefusedTable(snapshot.table.name, f"changes to branch {handle.branch}", "apply them by an engine")
    schema = snapshot.schema
    keys = () if batch.mode is ChangeMode.APPEND else _keys(schema, batch)
    if batch.distribution is Distribution.HASH and not keys:
        raise UsageError(f"{snapshot.table.name}: expected keys to distribute by, found mode {batch.mode}")
    if keys:
        _require_partitions_of_keys(schema, keys)
        _require_reach(snapshot)
    operation = _operation(snapshot, batch)
    # Files of a batch are soon rewritten: unless the table sets a compression level, prefer speed.
    quick = replace(schema, properties={"write.parquet.compression-level": "1", **schema.properties})
    return WriterTarget(handle.storage, quick, batch.mode, keys, operation)


def commit_batch(
    table: Address,
    handle: TableHandle,
    target: WriterTarget,
    batch: ChangeBatch,
    written: Sequence[WrittenChanges],
    *,
    run: Run,
) -> Applied:
    """Commit all files of the batch as one row delta. Tries again when another writer commits first.

    Raises UnknownOutcome if the outcome of the commit is unknown. Files of a batch that is not committed stay in
    storage until a sweep; their names contain the operation id.
    """
    files, commits = tuple(file for each in written for file in each.files), commits_of(table, handle)
    for _ in range(MAX_ATTEMPTS):
        earlier = find_applied(handle, batch)
        if earlier is not None:
            return earlier
        parent = read_version(table, handle)
        _require_same(target, parent)
        if _operation(parent, batch) != target.operation:
            raise RefusedTable(table.name, "it was created anew meanwhile", "apply the batch again")
        if not files:
            return Applied(parent.version, replayed=False)
        candidate = commit.stage_files(handle.storage, parent, files, run, summary=_summary(files, batch))
        try:
            won = commits.commit(candidate)
        except OSError as failure:
            if not commits.visible(candidate):
                subject = f"{table.name}: batch {batch.batch_id}"
                raise UnknownOutcome(subject, "an answer of the catalog", str(failure)) from failure
            won = True
        if won or commits.visible(candidate):
            return _done(candidate.version, files, written)
        commits.discard(candidate.staged)
    raise EvidenceError(f"{table.name}: batch {batch.batch_id}", "a commit", f"{MAX_ATTEMPTS} lost races")


def _operation(snapshot: IcebergSnapshot, batch: ChangeBatch) -> uuid.UUID:
    """The operation id, which depends only on table and batch."""
    return uuid.uuid5(_NAMESPACE, f"{snapshot.metadata.get('table-uuid')}\n{batch.batch_id}")


def _done(version: int, files: Sequence[NewFile], written: Sequence[WrittenChanges]) -> Applied:
    counts = {content.name.lower(): sum(file.content is content for file in files) for content in FileContent}
    steps = dict.fromkeys(step for each in written for step in each.seconds)
    seconds = {step: sum(each.seconds.get(step, 0.0) for each in written) for step in steps}
    return Applied(version, replayed=False, rows=sum(each.rows for each in written), files=counts, seconds=seconds)


def _summary(files: Sequence[NewFile], batch: ChangeBatch) -> Mapping[str, str]:
    """The snapshot's summary: the operation as in Java's BaseRowDelta, and the batch id."""
    kinds = {file.content for file in files}
    operation = "overwrite"
    if kinds == {FileContent.DATA}:
        operation = "append"
    elif FileContent.DATA not in kinds:
        operation = "delete"
    return {
        "operation": operation,
        "engine-name": "nightkeep",
        "engine-version": __version__,
        BATCH_PROPERTY: batch.batch_id,
    }


def _keys(schema: IcebergSchema, batch: ChangeBatch) -> tuple[str, ...]:
    """Names of the equality fields, in the order of their ids."""
    table, current = schema.table, schema.current
    if schema.format_version == 1:
        feature = "changes by keys of a table of format version 1, which has no deletes"
        raise RefusedTable(table, feature, "append, or upgrade it: SET TBLPROPERTIES ('format-version'='2')")
    columns = {column.name: column for column in current.fields}
    ids = batch.keys or tuple(str(current.find_column_name(number)) for number in current.identifier_field_ids)
    if not ids:
        raise UsageError(f"{table}: expected --key, as the table has no identifier fields, found none")
    for name in ids:
        if name not in columns:
            raise UsageError(f"{table}: expected keys among {', '.join(columns)}, found {name}")
        kind = columns[name].field_type
        if not isinstance(kind, PrimitiveType) or isinstance(kind, FloatType | DoubleType):
            raise RefusedTable(
                table, f"key {name} of type {kind}", "choose keys of a type whose values are equal or not"
            )
    return tuple(sorted(set(ids), key=lambda name: columns[name].field_id))


def _require_partitions_of_keys(schema: IcebergSchema, keys: tuple[str, ...]) -> None:
    """Raises RefusedTable unless partition columns are keys: a delete only reaches its own partition (IcebergSink)."""
    ids = {schema.current.find_field(name).field_id for name in keys}
    for each in schema.spec(schema.default_spec_id).fields:
        if str(each.transform) != "void" and each.source_id not in ids:
            source = schema.current.find_column_name(each.source_id)
            raise RefusedTable(
                schema.table,
                f"partition field {each.name} is of column {source}, which is no key: a key may change its partition",
                f"add {source} to the keys, or apply deletes and inserts of moved rows with both as keys",
            )


def _require_reach(snapshot: IcebergSnapshot) -> None:
    """Raises RefusedTable for live files of another spec: deletes do not apply across specs (spec, "Scan Planning")."""
    schema = snapshot.schema
    if schema.is_global(schema.default_spec_id):
        return
    others = sorted({unit.spec_id for unit in snapshot.units if unit.files} - {schema.default_spec_id})
    if others:
        raise RefusedTable(
            schema.table,
            f"live data files of spec {others[0]}, which deletes of spec {schema.default_spec_id} do not reach",
            "rewrite them into the current spec first",
        )


def _require_same(target: WriterTarget, head: IcebergSnapshot) -> None:
    """Raises RefusedTable if the table's schema or partition spec changed after the files were written."""
    now, then = head.schema, target.schema
    if (now.current, now.default_spec_id, now.format_version) != (
        then.current,
        then.default_spec_id,
        then.format_version,
    ):
        raise RefusedTable(then.table, "its schema or partition spec changed meanwhile", "apply the batch again")
    if target.keys:
        _require_reach(head)
