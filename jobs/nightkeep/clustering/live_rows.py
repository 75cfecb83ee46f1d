"""Data files of a unit -> their live rows, a batch at a time, and samples of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.sizing import batch_rows, is_gone
from nightkeep.kernels.bitmap import mask
from nightkeep.model.file_columns import SizedFile

F = TypeVar("F", bound=SizedFile)
Hidden = Callable[[F], BitMap64 | None]


class OpenFile(Protocol):
    """An open data file. Columns have the names that the unit's Writer uses; None means all columns."""

    rows: int

    def batches(self, names: Sequence[str] | None, *, batch_rows: int) -> Iterator[pa.Table]:
        """All rows in their order, in tables of one schema."""

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        """The rows at positions."""

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        """Some rows at random."""


def _any_file(file: SizedFile, reader: OpenFile) -> None:
    pass


def _counted(files: Sequence[SizedFile]) -> int:
    return sum(file.deleted_rows for file in files)


@dataclass(frozen=True, slots=True)
class LiveRows(Generic[F]):
    """Reads the live rows of one unit. The gate does not use this code.

    Pseudo columns (row ids, versions of rows) have the values that readers see, inherited ones included. Files without
    rows are not opened. Repeated calls give the same result.
    """

    opened: Callable[[F], OpenFile]
    hidden: Callable[[Sequence[F]], Hidden[F]]
    """Finds the positions of deleted rows for some of the files that are given."""
    require: Callable[[F, OpenFile], None] = _any_file
    """Raises an error for a file whose rows must not be rewritten."""
    deleted_rows: Callable[[Sequence[F]], int] = _counted
    """Number of deleted rows. May be too low if the exact number is expensive, never too high."""

    def batches(self, files: Sequence[F], columns: Sequence[str]) -> Iterator[pa.Table]:
        """The live rows of `files`, file by file in their order, in tables of one schema.

        A table has about `sizing.batch_rows` rows; some may have none.
        """
        some = _with_rows(files)
        hidden = self.hidden(some)
        for file in some:
            positions, reader = hidden(file), self.opened(file)
            self.require(file, reader)
            yield from _live_batches(reader, file, columns, positions)

    def count(self, files: Sequence[F]) -> int:
        """The number of rows that `batches` yields. May be too high, never too low."""
        some = _with_rows(files)
        physical = sum(self.opened(file).rows if file.rows is None else file.rows for file in some)
        return physical - self.deleted_rows(some)

    def sampled(self, files: Sequence[F], columns: Sequence[str], share: float) -> pa.Table:
        """About `share` of the rows of each file, at least one per file. Deleted rows may be included.

        `columns` are top-level columns. Repeated calls return the same sample. Opens one file at a time.
        """
        readers = (self.opened(file) for file in _with_rows(files))
        return pa.concat_tables(
            [reader.sampled(columns, int(reader.rows * share) + 1, number) for number, reader in enumerate(readers)]
        )


def _with_rows(files: Sequence[F]) -> Sequence[F]:
    return [file for file in files if not is_gone(file)]


def _live_batches(
    reader: OpenFile, file: SizedFile, columns: Sequence[str], hidden: BitMap64 | None
) -> Iterator[pa.Table]:
    # Uses a mask. The gate reads by position instead, so that it does not share a mistake here.
    start = 0
    for batch in reader.batches(columns, batch_rows=batch_rows(file.bytes, reader.rows)):
        if hidden:
            keep = ~mask(hidden, batch.num_rows, start)
            start += batch.num_rows
            batch = batch if keep.all() else batch.filter(pa.array(keep))
        yield batch
