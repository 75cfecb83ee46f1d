"""Rows by (file, position) in key order -> their columns in key order, one chunk at a time.

Files are sorted by key, so each file's rows come in file order: it is read forward. At most one chunk and one batch of
each sorted run are in memory, beside what a file's format reads as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.rewrite.candidates import file_places
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.storage import Storage

GATHERED_ROWS: Final = 1 << 15
"""Rows put in order at a time: few enough that their columns stay in a core's cache (`make bench-paimon`)."""
_DENSE: Final = 2
"""A piece with at most this many times the wanted rows is copied once, with the rows between them; else only the
wanted rows are, twice."""


@dataclass(frozen=True, slots=True)
class Held:
    """Those of a piece's rows at the ascending places `at`."""

    piece: pa.Table
    at: Rows


def _held(piece: pa.Table, at: Rows) -> Held:
    """The rows at `at`, copied only if there are many others between them."""
    first, span = int(at[0]), int(at[-1] - at[0]) + 1
    if span <= _DENSE * len(at):
        return Held(piece.slice(first, span), at - first)
    return Held(piece.take(at), np.arange(len(at)))


class ForwardFile:
    """Some columns of an open file, for positions that ascend from call to call. Others cost a second reading."""

    def __init__(self, reader: PaimonFileReader, columns: Sequence[str]) -> None:
        self._reader, self._columns = reader, columns
        self._pieces: Iterator[pa.Table] = iter(())
        self._piece: pa.Table | None = None
        self._start = self._stop = self._end = 0

    def rows(self, positions: Rows) -> Iterator[Held]:
        """The rows at ascending `positions`, in pieces."""
        while len(positions):
            first = int(positions[0])
            piece = self._piece
            if piece is None or not self._start <= first < self._stop:
                self._advance(first)
                continue
            count = int(np.searchsorted(positions, self._stop))
            yield _held(piece, positions[:count] - self._start)
            positions = positions[count:]

    def _advance(self, position: int) -> None:
        """Read the next batch, of the part that has `position`."""
        if not self._stop <= position < self._end:
            part = int(np.searchsorted(self._reader.starts, position, side="right")) - 1
            self._pieces = self._reader.batches(self._columns, [part])
            self._stop, self._end = (int(edge) for edge in self._reader.starts[part : part + 2])
        self._piece = next(self._pieces)
        self._start, self._stop = self._stop, self._stop + self._piece.num_rows


class ForwardFiles:
    """Files of a bucket by number. One file of each slot is open at a time. `known` columns are not read."""

    def __init__(
        self,
        storage: Storage,
        bucket: Bucket,
        files: Sequence[PaimonDataFile],
        *,
        columns: Sequence[str],
        slots: Sequence[Hashable],
        known: Collection[str] = (),
    ) -> None:
        self._storage, self._bucket, self._files, self._slots = storage, bucket, files, slots
        self.columns, self.known = columns, known
        self._open: dict[Hashable, tuple[int, ForwardFile]] = {}

    def rows(self, number: int, positions: Rows) -> Iterator[Held]:
        """The rows of one file at ascending `positions`, in pieces."""
        slot = self._slots[number]
        opened, file = self._open.get(slot, (None, None))
        if file is None or opened != number:
            self._open.pop(slot, None)
            reader = PaimonFileReader(self._storage, self._bucket, self._files[number])
            file = ForwardFile(reader, [name for name in self.columns if name not in self.known])
            self._open[slot] = (number, file)
        return file.rows(positions)


def run_slots(files: Sequence[PaimonDataFile], side: str = "") -> list[Hashable]:
    """A slot for each sorted run: files of a level above 0 have keys one after the other."""
    return [(side, file.level or file.name) for file in files]


def gather(
    files: ForwardFiles, of_row: npt.NDArray[np.int32], at: Rows, *, starts: Sequence[int]
) -> Iterator[pa.Table]:
    """Tables of the files' columns, one from each of the ascending `starts` to the next. Row i is at position `at[i]`
    of file `of_row[i]`. Raises ValueError unless the rows of each file come in file order."""
    for start, stop in pairwise([*starts, len(of_row)]):
        numbers, places = of_row[start:stop], at[start:stop]
        by_source = np.argsort(numbers, kind="stable")
        pieces: list[pa.Table] = []
        place, count, done = np.empty_like(by_source), 0, 0
        for own in np.split(by_source, np.flatnonzero(np.diff(numbers[by_source])) + 1):
            positions = places[own]
            if bool((np.diff(positions) <= 0).any()):
                raise ValueError("rows of a file in key order are not in file order: its keys do not ascend")
            for held in files.rows(int(numbers[own[0]]), positions):
                size = len(held.at)
                place[by_source[done : done + size]] = held.at + count
                pieces.append(held.piece)
                count, done = count + held.piece.num_rows, done + size
        rows = pa.concat_tables(pieces)
        in_order = count == len(place) and bool((np.diff(place) > 0).all())
        yield rows if in_order else rows.combine_chunks().take(place)


def completed(files: ForwardFiles, rows: pa.Table, chosen: Rows, *, starts: Sequence[int]) -> Iterator[pa.Table]:
    """The `chosen` of `rows`, in that order, with all columns: the `known` ones are taken from `rows`.

    `rows` have their places, and no chunks. Tables begin at `starts`, as those of `gather`.
    """
    has = rows.select([name for name in files.columns if name in files.known])
    pieces = gather(files, *file_places(rows, chosen), starts=starts)
    for start, read in zip(starts, pieces, strict=True):
        own = has.take(chosen[start : start + read.num_rows])
        yield pa.table({name: (own if name in has.column_names else read).column(name) for name in files.columns})


def even_chunks(pieces: Iterable[pa.Table], rows: int, *, pairs: tuple[str, int] | None = None) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows, fewer at the end, whatever the pieces are. No row is copied.

    `pairs` is a column and its value in rows that the next row must be with: then a chunk may have one row more.
    """
    held: list[pa.Table] = []
    count = 0
    for piece in pieces:
        if piece.num_rows:
            held.append(piece)
            count += piece.num_rows
        while count > rows:
            joined = pa.concat_tables(held)
            size = rows + _parts_a_pair(joined, rows - 1, pairs)
            yield joined.slice(0, size)
            held = [joined.slice(size)] if size < count else []
            count -= size
    if held:
        yield pa.concat_tables(held)


def _parts_a_pair(rows: pa.Table, last: int, pairs: tuple[str, int] | None) -> bool:
    return pairs is not None and rows.column(pairs[0])[last].as_py() == pairs[1]
