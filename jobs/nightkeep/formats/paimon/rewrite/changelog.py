"""Keys that level-0 rows touch, with their rows before and after -> changelog files, as streaming readers follow them.

A key's row before is the one above level 0, its row after the one that the step shows. A key that comes is +I, one that
goes -D with the row that goes, one that stays -U and +U. Follows LookupChangelogMergeFunctionWrapper.setChangelog and
ChangelogMergeTreeRewriter (C/mergetree/compact) of Paimon 2.0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, PaimonFileReader
from nightkeep.formats.paimon.data.write import FilePurpose, PaimonFileWriter, WrittenPaimonFile
from nightkeep.formats.paimon.metadata.changelog import ChangelogRules, changelog_rules
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, data_file
from nightkeep.formats.paimon.rewrite.gather import WantedRows, gather
from nightkeep.formats.paimon.rewrite.lookup import Hits, find_rows
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags, OrderBy, in_order
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
"""Values of _VALUE_KIND on disk (RowKind.java)."""
_NONE = -1
Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Touched:
    """Keys with rows on level 0, unique, in key order, and the rows that they had above level 0.

    `file` is the number of a row's file among `files`, _NONE for a key without a row; `position` its place in it.
    """

    keys: pa.Table
    files: tuple[PaimonDataFile, ...]
    file: Rows
    position: Rows

    def with_found(self, hits: Sequence[Hits]) -> Touched:
        """With the rows that a lookup found. Its wanted keys are those without a row, in order."""
        numbers = {file.name: number for number, file in enumerate(self.files)}
        file, position, missing = self.file.copy(), self.position.copy(), np.flatnonzero(self.file == _NONE)
        for hit in hits:
            at = missing[hit.wanted]
            file[at], position[at] = numbers[hit.file.name], hit.positions
        return Touched(self.keys, self.files, file, position)


def untouched_above(keys: pa.Table, files: Sequence[PaimonDataFile]) -> Touched:
    """Keys of which no merged file has a row above level 0."""
    none = np.full(keys.num_rows, _NONE, np.int64)
    return Touched(keys, tuple(files), none, none)


def touched_keys(
    rows: pa.Table, keys: Sequence[str], files: Sequence[PaimonDataFile], *, level: str, place: tuple[str, str]
) -> Touched:
    """The keys of `rows` that have a row on level 0. Above it, `rows` have at most one row of a key.

    `level` and `place` name the columns of a row's level, and of its file's number and its position in the file.
    """
    ordered, starts = in_order(rows.select([*keys, level]), keys=keys, order=[OrderBy(level)])
    levels = rows.column(level).to_numpy()[ordered]
    ends = np.append(starts[1:], len(ordered)) - 1
    lifted = levels[starts] == 0 if len(starts) else np.zeros(0, np.bool_)
    starts, ends = starts[lifted], ends[lifted]
    above = levels[ends] > 0
    file, position = (
        np.where(above, rows.column(name).to_numpy()[ordered[ends]].astype(np.int64), _NONE) for name in place
    )
    return Touched(rows.select(keys).take(ordered[starts]), tuple(files), file, position)


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

    def of_written(self, touched: Touched, written: Sequence[WrittenPaimonFile]) -> list[WrittenPaimonFile]:
        """The changes of a step whose rows after are in new files."""
        schema = self.bucket.schemas.current
        key_types = [field.type for field in schema.select(schema.trimmed_keys)]
        files = [data_file(file.record, key_types) for file in written]
        return self._written(touched, find_rows(self.storage, self.bucket, files, touched.keys))

    def of_lifted(self, touched: Touched, file: PaimonDataFile) -> list[WrittenPaimonFile]:
        """The changes of a file that changes its level only: each of its rows is the one after."""
        every = np.arange(file.rows)
        return self._written(touched, (Hits(file, every, every),))

    def _written(self, touched: Touched, after: Sequence[Hits]) -> list[WrittenPaimonFile]:
        writer = PaimonFileWriter(
            self.storage, self.bucket, self.naming, level=self.level, now_ms=self.now_ms, purpose=FilePurpose.CHANGES
        )
        return writer.write(self._changes(touched, after, writer), target_bytes=self.target_bytes)

    def _changes(self, touched: Touched, after: Sequence[Hits], writer: PaimonFileWriter) -> Iterator[pa.Table]:
        """Changes in key order, a row before its successor, in chunks that end where a key ends."""
        places = _places(touched, after)
        opened = {
            int(number): WantedRows(
                PaimonFileReader(self.storage, self.bucket, places.files[number]),
                places.position[places.file == number],
            )
            for number in np.unique(places.file)
        }
        chunk_rows = writer.chunk_rows(self.target_bytes)
        edges = np.unique(np.searchsorted(places.starts, np.arange(0, len(places.kinds), chunk_rows)))
        starts = places.starts[edges[edges < len(places.starts)]]
        chunks = gather(opened, places.file.astype(np.int32), columns=writer.columns, starts=starts.tolist())
        for start, rows in zip(starts, chunks, strict=True):
            kinds = places.kinds[start : start + rows.num_rows]
            chunk = self._told(rows, kinds)
            if chunk.num_rows:
                yield chunk

    def _told(self, rows: pa.Table, kinds: Kinds) -> pa.Table:
        """The rows with their kinds as changes, without those that tell nothing."""
        kinds, told = _without_deleted(kinds, rows.column(KIND).to_numpy())
        if self.rules.silent_if_equal:
            before = np.flatnonzero(told & (kinds == UPDATE_BEFORE))
            columns = self.rules.compared(self.bucket.schemas.current)
            equal = before[are_equal(rows, before, before + 1, columns=columns)]
            told[equal] = told[equal + 1] = False
        rows = rows.set_column(rows.column_names.index(KIND), KIND, pa.array(kinds))
        return rows if told.all() else rows.filter(pa.array(told))


def changelog_writer(
    storage: Storage, bucket: Bucket, naming: PaimonNaming, *, level: int, now_ms: int, target_bytes: int
) -> ChangelogWriter | None:
    """None for a table whose compactions tell nothing."""
    rules = changelog_rules(bucket.schemas.current)
    return None if rules is None else ChangelogWriter(storage, bucket, naming, rules, level, now_ms, target_bytes)


@dataclass(frozen=True, slots=True)
class _Places:
    """Rows of changes in their order: the number of each one's file among `files`, its position there, its kind.

    A key's changes begin at one of `starts`.
    """

    files: tuple[PaimonDataFile, ...]
    file: Rows
    position: Rows
    kinds: Kinds
    starts: Rows


def _places(touched: Touched, after: Sequence[Hits]) -> _Places:
    count = touched.keys.num_rows
    after_file, after_at = np.full(count, _NONE, np.int64), np.full(count, _NONE, np.int64)
    # A file may hold rows of both sides: it is opened once for each, and read forward for each.
    for number, hit in enumerate(after, start=len(touched.files)):
        after_file[hit.wanted], after_at[hit.wanted] = number, hit.positions
    had, has = touched.file != _NONE, after_file != _NONE
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
    changed = had | has
    return _Places((*touched.files, *(hit.file for hit in after)), file, position, kinds, first[changed])


def _without_deleted(kinds: Kinds, stored: Kinds) -> tuple[Kinds, Flags]:
    """Kinds, and flags of rows to tell. A row before that deletes its key is none."""
    deleted = np.isin(kinds, (UPDATE_BEFORE, DELETE)) & np.isin(stored, RETRACT_KINDS)
    alone = np.zeros_like(deleted)
    alone[1:] = deleted[:-1]
    return np.where(alone & (kinds == UPDATE_AFTER), np.int8(INSERT), kinds), ~deleted


def are_equal(rows: pa.Table, left: Rows, right: Rows, *, columns: Sequence[str]) -> Flags:
    """Whether two rows are equal in these columns, for each pair of row numbers, as Java's generated RecordEqualiser
    says: null equals null, NaN equals NaN, and 0.0 differs from -0.0. Without columns every pair is."""
    equal = np.ones(len(left), np.bool_)
    for name in columns:
        equal &= _equal_values(rows.column(name).take(left), rows.column(name).take(right))
    return equal


def _equal_values(left: ChunkedArray, right: ChunkedArray) -> Flags:
    equal = pc.fill_null(pc.equal(_by_bits(left), _by_bits(right)), pa.scalar(value=False))
    flags: Flags = np.asarray(equal) | (np.asarray(left.is_null()) & np.asarray(right.is_null()))
    return flags


def _by_bits(column: ChunkedArray) -> ChunkedArray:
    """Floats as the integers of Double.doubleToLongBits, which knows one NaN and two zeros."""
    if not pa.types.is_floating(column.type):
        return column
    values = column.to_numpy()
    bits = np.where(np.isnan(values), values.dtype.type("nan"), values).view(f"i{values.dtype.itemsize}")
    return pa.chunked_array([pa.array(bits, mask=np.asarray(column.is_null()))])
