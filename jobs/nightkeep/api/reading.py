"""nightkeep.read and read_plan: a table and options -> its rows as Arrow batches, or the plan of reading them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from nightkeep.api.call_context import find_context
from nightkeep.errors import RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Address
from nightkeep.reading.changelog import PlannedChangelog, plan_changelog
from nightkeep.reading.changes import PlannedDiff, plan_diff
from nightkeep.reading.plan import Planned, plan_read
from nightkeep.reading.report import ReadPlan
from nightkeep.reading.request import ChangesSince, Incremental, ReadRequest, request_of, start_of
from nightkeep.reading.splits import read_split

if TYPE_CHECKING:
    from nightkeep.protocol import Unit
    from nightkeep.protocol.reading import OpenReading


def read(
    table: str,
    *,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    version: int | None = None,
    tag: str | None = None,
    view: str | None = None,
    incremental: str | None = None,
    since: int | None = None,
    policy: str | Path | None = None,
) -> pa.RecordBatchReader:
    """The rows of a table, in no order, as batches of Arrow. Without `version` and `tag`, of the newest version.

    `columns` are all by default. `where` is a condition in Spark SQL. Without `view` ("raw", "merge-on-read",
    "read-optimized"), the rows are those that the engine's own batch read shows. `incremental="diff"` shows the rows
    whose presence changed since the version `since`, with a first column `_change_type` of INSERT and DELETE.
    `incremental="changelog"` shows what the commits since then reported to streaming readers, with UPDATE_BEFORE and
    UPDATE_AFTER too; changes of one key come in their order. Raises UsageError for what the table does not have, and
    RefusedTable; while batches are read, EvidenceError for files that differ from their metadata.
    """
    address = find_context(policy, None).chosen(table).address
    request, reading = request_of(columns, where, version, tag, view), reading_of(address)
    start = start_of(incremental, since)
    if start is not None:
        changes = plan_changes(address, reading, request, start)
        return _reader(changes.schema, changes.types, changes.batches())
    planned = plan_read(address.name, address.format, reading, request)
    return _reader(planned.shown.schema, planned.types, _batches(planned))


def read_plan(
    table: str,
    *,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    version: int | None = None,
    tag: str | None = None,
    view: str | None = None,
    policy: str | Path | None = None,
) -> ReadPlan:
    """What `read` with these options reads, and what it leaves out and why. Reads metadata and footers."""
    address = find_context(policy, None).chosen(table).address
    request = request_of(columns, where, version, tag, view)
    return plan_read(address.name, address.format, reading_of(address), request, footers=True).plan


def plan_changes(
    address: Address, reading: OpenReading, request: ReadRequest, start: ChangesSince
) -> PlannedDiff | PlannedChangelog:
    """The changes of an incremental read. Raises UsageError and RefusedTable."""
    if start.kind is Incremental.DIFF:
        return plan_diff(address.name, address.format, reading, request, start.since)
    return plan_changelog(address.name, address.format, reading, request, start.since)


def reading_of(address: Address) -> OpenReading:
    """The functions that read the table's rows. Raises RefusedTable for a format without them."""
    opened = open_table(address)
    if opened.reading is None:
        raise RefusedTable(
            address.name, f"{address.format} tables are not read", "delta, iceberg and paimon tables are"
        )
    return opened.reading


def _reader(schema: pa.Schema, types: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """The batches with the types that people see."""
    shown = pa.schema([types.field(each.name) if each.name in types.names else each for each in schema])
    return pa.RecordBatchReader.from_batches(
        shown, (batch.cast(shown) for batch in batches) if shown != schema else batches
    )


def _batches(planned: Planned[Unit]) -> Iterator[pa.RecordBatch]:
    for split in planned.splits:
        yield from read_split(planned.files, split, planned.shown)
