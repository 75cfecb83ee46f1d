"""Two versions -> the rows whose presence changed between them. Files that both show alike are not read.

The changed files are read twice: once for the hashes of their rows, once for the rows that the other version lacks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nightkeep.errors import UsageError
from nightkeep.kernels.row_difference import Hashes, RowDifference
from nightkeep.protocol.hashed_rows import row_hashes
from nightkeep.protocol.reading import FileSection, OpenReading, ReadView
from nightkeep.protocol.work import Unit
from nightkeep.reading.plan import Planned, planned
from nightkeep.reading.request import ReadRequest, shown_rows
from nightkeep.reading.splits import ShownRows, read_split

KIND: Final = "_change_type"
"""The column that states what happened to a row, as in Iceberg's changelogs: INSERT, DELETE; in changelogs also
UPDATE_BEFORE, UPDATE_AFTER."""
ADDED, REMOVED = "INSERT", "DELETE"


@dataclass(frozen=True, slots=True)
class PlannedDiff:
    """The changed files of both versions, and the columns to show. Rows are compared by all columns."""

    before: Planned[Unit]
    after: Planned[Unit]
    schema: pa.Schema

    @property
    def types(self) -> pa.Schema:
        """As that of the files."""
        return self.after.types

    def divided(self) -> Sequence[PlannedDiff]:
        """One: rows of any file may be those of another."""
        return (self,)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Rows that only the version after has, then rows that only the one before has."""
        difference = RowDifference(_hashes(self.after), _hashes(self.before))
        for side, taken, kind in ((self.after, difference.added, ADDED), (self.before, difference.removed, REMOVED)):
            for batch in _rows(side) if difference else ():
                found = batch.filter(pa.array(taken(row_hashes(batch))))
                if found.num_rows:
                    kinds = pa.array([kind] * found.num_rows, pa.string())
                    columns = [found.column(name) for name in self.schema.names[1:]]
                    yield pa.RecordBatch.from_arrays([kinds, *columns], schema=self.schema)


def plan_diff(table: str, format: str, reading: OpenReading, request: ReadRequest, since: int) -> PlannedDiff:
    """Plan the difference between the version `since` and that of the request, both with the latter's columns.

    Without a view, the states are merged on read, as the engines compare them. Raises as `plan_read`."""
    after = reading.snapshot(request.version, request.tag)
    before = reading.snapshot(since, read_as=after)
    asked = shown_rows(request, reading.columns(after))
    schema = with_kind(table, asked.schema)
    view = request.view or ReadView.MERGE_ON_READ
    every = ShownRows(reading.columns(after), asked.where)
    ours, theirs = (_by_piece(reading, reading.sections(snapshot, view)) for snapshot in (before, after))
    plans = [
        planned(
            table,
            format,
            reading,
            snapshot,
            view,
            request=request,
            shown=every,
            sections=[section for key, section in side.items() if key not in other],
        )
        for snapshot, side, other in ((before, ours, theirs), (after, theirs, ours))
    ]
    return PlannedDiff(plans[0], plans[1], schema)


def with_kind(table: str, columns: pa.Schema) -> pa.Schema:
    """The columns of changes. Raises UsageError for a table that has a column of that name."""
    if KIND in columns.names:
        raise UsageError(f"{table}: expected no column named {KIND}, which states what changed, found one")
    return pa.schema([pa.field(KIND, pa.string()), *columns])


def _by_piece(reading: OpenReading, sections: Sequence[FileSection[Unit]]) -> dict[Hashable, FileSection[Unit]]:
    """Sections by what they show; those of files that are read one by one are divided by file."""
    pieces: dict[Hashable, FileSection[Unit]] = {}
    for section in sections:
        parts = [section] if section.merges else list(_single_files(reading, section))
        for part in parts:
            pieces[part.unit.key, part.merges, reading.content(part.unit)] = part
    return pieces


def _single_files(reading: OpenReading, section: FileSection[Unit]) -> Iterator[FileSection[Unit]]:
    for file in section.files:
        yield FileSection(reading.files.narrowed(section.unit, {file.name}), (file,))


def _rows(side: Planned[Unit]) -> Iterator[pa.RecordBatch]:
    for split in side.splits:
        yield from read_split(side.files, split, side.shown)


def _hashes(side: Planned[Unit]) -> Iterator[Hashes]:
    return (row_hashes(batch) for batch in _rows(side))
