"""Two versions -> what the commits between them reported to streaming readers: the rows of their changelog files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.model.arrow_types import Array
from nightkeep.protocol.reading import OpenReading, ReadView
from nightkeep.protocol.work import Unit
from nightkeep.reading.changes import with_kind
from nightkeep.reading.plan import Planned, planned
from nightkeep.reading.request import Incremental, ReadRequest, shown_rows
from nightkeep.reading.splits import ShownRows, read_split


@dataclass(frozen=True, slots=True)
class PlannedChangelog:
    """The changelog files to read, and the columns to show, first that of `kinds`. Files have its place in these."""

    table: str
    files: Planned[Unit]
    kinds: tuple[str, ...]
    schema: pa.Schema

    @property
    def types(self) -> pa.Schema:
        """As that of the files."""
        return self.files.types

    def divided(self) -> Sequence[PlannedChangelog]:
        """One for each split, in their order; one for none. A key's changes may be in several."""
        parts = [replace(self, files=replace(self.files, splits=(split,))) for split in self.files.splits]
        return parts or (self,)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The changes, those of one key in the order in which they were reported."""
        for split in self.files.splits:
            for batch in read_split(self.files.files, split, self.files.shown):
                kinds = self._named(batch.column(0))
                yield pa.RecordBatch.from_arrays([kinds, *batch.columns[1:]], schema=self.schema)

    def _named(self, kinds: Array) -> Array:
        known = range(len(self.kinds))
        if kinds.null_count or not pc.all(pc.is_in(kinds, pa.array(known, kinds.type))).as_py():
            found = sorted(set(map(str, pc.unique(kinds))))
            raise CorruptMetadata(f"{self.table}: kinds of changes", f"some of {list(known)}", ", ".join(found))
        return pa.array(self.kinds, pa.string()).take(np.asarray(kinds))


def plan_changelog(table: str, format: str, reading: OpenReading, request: ReadRequest, since: int) -> PlannedChangelog:
    """Plan to read what was reported after the version `since`, up to that of the request, with the latter's columns.

    Raises RefusedTable for tables whose commits report no changes, UsageError for a view, and as `plan_read`."""
    kind = Incremental.CHANGELOG
    if reading.changelog is None:
        advice = f"use incremental = {Incremental.DIFF}"
        raise RefusedTable(table, f"incremental = {kind} of {format} tables is not handled", advice)
    if request.view is not None:
        raise UsageError(f"view: expected none with incremental = {kind}, found {request.view}")
    after = reading.snapshot(request.version, request.tag)
    asked = shown_rows(request, reading.columns(after))
    schema = with_kind(table, asked.schema)
    stored = pa.schema([pa.field(reading.changelog.kind, pa.int8()), *asked.schema])
    sections = reading.changelog.sections(after, since)
    plan = planned(
        table,
        format,
        reading,
        after,
        ReadView.RAW,
        request=request,
        shown=ShownRows(stored, asked.where),
        sections=sections,
    )
    return PlannedChangelog(table, plan, reading.changelog.kinds, schema)
