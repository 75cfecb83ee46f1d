"""A split -> its rows as Arrow batches. Runs wherever the split is sent: it has all metadata that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, naming
from nightkeep.kernels.bitmap import mask
from nightkeep.protocol.reading import FileReads, RowFile
from nightkeep.protocol.work import U
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.condition import Test, columns_of
from nightkeep.sql_text.rows.pruning import can_be_true, paths_of

Flags = npt.NDArray[np.bool_]
_PROMISE = "rows as their schema promises"


@dataclass(frozen=True, slots=True)
class FileRange:
    """A data file, or some of its row groups: `groups` None means all that the filter does not leave out."""

    name: str
    bytes: int
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadPart(Generic[U]):
    """Files of one unit; `unit` has these files only. `merges`: they are read together."""

    unit: U
    ranges: tuple[FileRange, ...]
    merges: bool

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.ranges)


@dataclass(frozen=True, slots=True)
class ShownRows:
    """What is read of each row: `schema` in its order, of the rows for which `where` is true."""

    schema: pa.Schema
    where: Test | None

    @property
    def tested(self) -> tuple[str, ...]:
        return () if self.where is None else tuple(sorted(columns_of(self.where)))


@dataclass(frozen=True, slots=True)
class ReadSplit(Generic[U]):
    """What one task reads, part by part."""

    parts: tuple[ReadPart[U], ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def read_split(files: FileReads[U], split: ReadSplit[U], shown: ShownRows) -> Iterator[pa.RecordBatch]:
    """The rows of the split, in no order, in batches of `shown.schema` that are not empty.

    Holds a batch of each column at a time; with a condition, the condition's columns of a row group; for files that
    are merged, the keys of all of their rows.
    """
    for part in split.parts:
        tables = _merged(files, part, shown) if part.merges else _raw(files, part, shown)
        with naming(part.unit.key, _PROMISE):
            for table in tables:
                for batch in table.to_batches():
                    if batch.num_rows:
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=shown.schema)


def _merged(files: FileReads[U], part: ReadPart[U], shown: ShownRows) -> Iterator[pa.Table]:
    names = shown.schema.names
    needed = list(dict.fromkeys([*names, *shown.tested]))
    for batch in files.merged(part.unit, needed):
        rows = pa.Table.from_batches([batch])
        yield (rows if shown.where is None else rows.filter(is_true(shown.where, rows))).select(names)


def _raw(files: FileReads[U], part: ReadPart[U], shown: ShownRows) -> Iterator[pa.Table]:
    hidden = files.hidden(part.unit)
    for each in part.ranges:
        opened = files.open(part.unit, each.name)
        rows = _FileRows(opened, hidden.get(each.name, BitMap64()))
        groups = matching_groups(opened, shown.where) if each.groups is None else each.groups
        yield from rows.all(shown.schema.names, groups) if shown.where is None else rows.where(shown, groups)


def matching_groups(opened: RowFile, where: Test | None) -> Sequence[int]:
    """The row groups in which the condition can be true, by their statistics."""
    count = len(opened.groups)
    if where is None or not count:
        return range(count)
    spans = opened.spans(paths_of(where))
    return [int(group) for group in np.flatnonzero(can_be_true(where, spans, count))]


class _FileRows:
    """The live rows of one open file."""

    def __init__(self, opened: RowFile, hidden: BitMap64) -> None:
        self._opened, self._hidden = opened, hidden
        starts = np.cumsum([0, *opened.groups])
        self._starts: Sequence[int] = starts.tolist()
        if hidden and hidden.max() >= self._starts[-1]:
            expected = f"deleted positions below its {self._starts[-1]} rows"
            raise CorruptMetadata(opened.subject, expected, str(hidden.max()))

    def all(self, columns: Sequence[str], groups: Sequence[int]) -> Iterator[pa.Table]:
        for start, piece in self._opened.pieces(columns, groups):
            deleted = self._hidden.range_cardinality(start, start + piece.num_rows) if self._hidden else 0
            if deleted == piece.num_rows:
                continue
            yield piece.filter(pa.array(self._live(start, piece.num_rows))) if deleted else piece

    def where(self, shown: ShownRows, groups: Sequence[int]) -> Iterator[pa.Table]:
        """Group by group: first the condition's columns, then, if any row passes, the others."""
        assert shown.where is not None
        names = shown.schema.names
        rest = [name for name in names if name not in shown.tested]
        for group in groups:
            start, count = self._starts[group], self._opened.groups[group]
            if not count:
                continue
            tested = pa.concat_tables(piece for _, piece in self._opened.pieces(shown.tested, [group]))
            keep: Flags = np.asarray(is_true(shown.where, tested)) & self._live(start, count)
            if not keep.any():
                continue
            tested = tested.select([name for name in names if name in shown.tested])
            if not rest:
                yield tested.filter(pa.array(keep))
                continue
            for at, piece in self._opened.pieces(rest, [group]):
                window = slice(at - start, at - start + piece.num_rows)
                if keep[window].any():
                    both = _beside(piece, tested.slice(window.start, piece.num_rows)).select(names)
                    yield both.filter(pa.array(keep[window]))

    def _live(self, start: int, count: int) -> Flags:
        if not self._hidden:
            return np.ones(count, np.bool_)
        return ~mask(self._hidden, count, start)


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    for name, column in zip(right.column_names, right.columns, strict=True):
        left = left.append_column(name, column)
    return left
