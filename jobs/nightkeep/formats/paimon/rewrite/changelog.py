"""Keys with new rows, with their rows before and after -> changelog files, as streaming readers follow them.

Rows are new below ChangelogRules.told_from: on level 0, or below the top level. A key's row before is the one above
them, its row after the one that the step shows. A key that comes is +I, one that goes -D with the row that goes, one
that stays -U and +U. Follows ChangelogMergeTreeRewriter, LookupChangelogMergeFunctionWrapper.setChangelog and
FullChangelogMergeFunctionWrapper (C/mergetree/compact) of Paimon 2.0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS
from nightkeep.formats.paimon.data.write import FilePurpose, PaimonFileWriter, WrittenPaimonFile
from nightkeep.formats.paimon.metadata.changelog import ChangelogRules, changelog_rules
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, data_file
from nightkeep.formats.paimon.rewrite.equal_rows import are_equal
from nightkeep.formats.paimon.rewrite.gather import ForwardFiles, even_chunks, gather, run_slots
from nightkeep.formats.paimon.rewrite.lookup import Hits, find_rows
from nightkeep.formats.paimon.rewrite.touched import NO_ROW, Touched
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.storage import Storage

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
"""Values of _VALUE_KIND on disk (RowKind.java)."""
Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class ChangelogWriter:
    """Writes the changelog files of one task. `target_bytes` is where a file ends."""

    storage: Storage
    bucket: Bucket
    naming: PaimonNaming
    rules: ChangelogRules
    level: int
    now_ms: int
    target_bytes: int

    def of_written(
        self, touched: Iterable[Touched], before: Sequence[PaimonDataFile], written: Sequence[WrittenPaimonFile]
    ) -> list[WrittenPaimonFile]:
        """The changes of a step whose rows after are in new files. `before` are the files of `touched`."""
        schema = self.bucket.schemas.current
        key_types = [field.type for field in schema.select(schema.trimmed_keys)]
        after = [data_file(file.record, key_types) for file in written]
        changes = ((some, find_rows(self.storage, self.bucket, after, some.keys)) for some in touched)
        return self._written(changes, before, after)

    def of_lifted(
        self, touched: Iterable[tuple[Touched, Rows]], before: Sequence[PaimonDataFile], file: PaimonDataFile
    ) -> list[WrittenPaimonFile]:
        """The changes of a file that changes its level only: each of its rows is the one after. They come with their
        keys, as positions."""
        changes = ((some, (Hits(file, np.arange(len(at)), at),)) for some, at in touched)
        return self._written(changes, before, [file])

    def _written(
        self,
        changes: Iterable[tuple[Touched, Sequence[Hits]]],
        before: Sequence[PaimonDataFile],
        after: Sequence[PaimonDataFile],
    ) -> list[WrittenPaimonFile]:
        writer = PaimonFileWriter(
            self.storage, self.bucket, self.naming, level=self.level, now_ms=self.now_ms, purpose=FilePurpose.CHANGES
        )
        rows = writer.chunk_rows(self.target_bytes)
        # A file may hold rows of both sides: it is opened once for each, and read forward for each.
        files = ForwardFiles(
            self.storage,
            self.bucket,
            (*before, *after),
            columns=writer.columns,
            slots=(*run_slots(before, "before"), *run_slots(after, "after")),
        )
        numbers = {file.name: number for number, file in enumerate(after, start=len(before))}
        pieces = (
            piece
            for touched, hits in changes
            for piece in self._changes(_places(touched, hits, numbers), files, chunk_rows=rows)
        )
        chunks = even_chunks(pieces, rows, pairs=(KIND, UPDATE_BEFORE))
        return writer.write(chunks, target_bytes=self.target_bytes)

    def _changes(self, places: _Places, files: ForwardFiles, *, chunk_rows: int) -> Iterator[pa.Table]:
        """Changes in key order, a row before its successor, in pieces that end where a key ends."""
        edges = np.unique(np.searchsorted(places.starts, np.arange(0, len(places.kinds), chunk_rows)))
        starts = places.starts[edges[edges < len(places.starts)]]
        chunks = gather(files, places.file.astype(np.int32), places.position, starts=starts.tolist())
        for start, rows in zip(starts, chunks, strict=True):
            yield self._reported(rows, places.kinds[start : start + rows.num_rows])

    def _reported(self, rows: pa.Table, kinds: Kinds) -> pa.Table:
        """The rows with their kinds as changes, without those that report no change."""
        if self.rules.of_first_rows:
            return rows
        kinds, reported = _without_retracts(kinds, rows.column(KIND).to_numpy())
        if self.rules.silent_if_equal:
            before = np.flatnonzero(reported & (kinds == UPDATE_BEFORE))
            columns = self.rules.compared(self.bucket.schemas.current)
            equal = before[are_equal(rows, before, before + 1, columns=columns)]
            reported[equal] = reported[equal + 1] = False
        rows = rows.set_column(rows.column_names.index(KIND), KIND, pa.array(kinds))
        return rows if reported.all() else rows.filter(pa.array(reported))


def changelog_writer(
    storage: Storage, bucket: Bucket, naming: PaimonNaming, *, level: int, now_ms: int, target_bytes: int
) -> ChangelogWriter | None:
    """None for a table whose compactions write no changelog, and for a level that streaming readers do not know."""
    rules = changelog_rules(bucket.schemas.current)
    if rules is None or level < rules.lowest_known:
        return None
    return ChangelogWriter(storage, bucket, naming, rules, level, now_ms, target_bytes)


@dataclass(frozen=True, slots=True)
class _Places:
    """Rows of changes in their order: the number of each one's file, its position there, its kind.

    A key's changes begin at one of `starts`.
    """

    file: Rows
    position: Rows
    kinds: Kinds
    starts: Rows


def _places(touched: Touched, after: Sequence[Hits], numbers: Mapping[str, int]) -> _Places:
    """`numbers` are those of the files after, which follow those of the touched rows."""
    count = touched.keys.num_rows
    after_file, after_at = np.full(count, NO_ROW, np.int64), np.full(count, NO_ROW, np.int64)
    for hit in after:
        after_file[hit.wanted], after_at[hit.wanted] = numbers[hit.file.name], hit.positions
    had, has = touched.file != NO_ROW, after_file != NO_ROW
    first = np.cumsum(had.astype(np.int64) + has) - had - has
    total = int(had.sum() + has.sum())
    file, position, kinds = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int8)
    for side, files, at, offset, alone, paired, other in (
        (had, touched.file, touched.position, 0, DELETE, UPDATE_BEFORE, has),
        (has, after_file, after_at, had, INSERT, UPDATE_AFTER, had),
    ):
        place = (first + offset)[side]
        file[place], position[place] = files[side], at[side]
        kinds[place] = np.where(other[side], paired, alone)
    return _Places(file, position, kinds, first[had | has])


def _without_retracts(kinds: Kinds, stored: Kinds) -> tuple[Kinds, Flags]:
    """Kinds, and flags of rows to report. A row that deletes its key is none, before or after: then the other one of
    its key comes or goes."""
    retract: Flags = np.isin(stored, RETRACT_KINDS)
    follows, leads = np.zeros_like(retract), np.zeros_like(retract)
    follows[1:], leads[:-1] = retract[:-1], retract[1:]
    comes, goes = follows & (kinds == UPDATE_AFTER), leads & (kinds == UPDATE_BEFORE)
    return np.where(comes, np.int8(INSERT), np.where(goes, np.int8(DELETE), kinds)), ~retract
