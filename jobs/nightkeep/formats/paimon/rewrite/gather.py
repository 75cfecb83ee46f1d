"""Wanted rows by (file, position) in key order -> the rows in key order, one chunk at a time.

Files are sorted by key, so each file's wanted rows come in file order. Every file is read once, forward. At most one
chunk and one batch of each file are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import PaimonFileReader


class WantedRows:
    """The wanted rows of one file, returned in file order. `positions` are ascending."""

    def __init__(self, reader: PaimonFileReader, positions: npt.NDArray[np.int64]) -> None:
        self._reader, self._positions = reader, positions
        self._pieces: Iterator[pa.Table] | None = None
        self._rest: pa.Table | None = None

    def next_rows(self, count: int, columns: Sequence[str]) -> list[pa.Table]:
        """The next `count` wanted rows, as tables in order."""
        if self._pieces is None:
            self._pieces = self._reader.taken(columns, self._positions)
        pieces: list[pa.Table] = []
        while count:
            piece = self._rest if self._rest is not None else next(self._pieces)
            pieces.append(piece.slice(0, count))
            self._rest = piece.slice(count) if piece.num_rows > count else None
            count -= pieces[-1].num_rows
        return pieces


def gather(
    sources: Mapping[int, WantedRows], of_row: npt.NDArray[np.int32], *, columns: Sequence[str], starts: Sequence[int]
) -> Iterator[pa.Table]:
    """Tables of `columns`, one from each of the ascending `starts` to the next. Row i is the next row of source
    `of_row[i]`."""
    for start, stop in pairwise([*starts, len(of_row)]):
        numbers = of_row[start:stop]
        counts = np.bincount(numbers)
        pieces = [
            piece
            for number in np.flatnonzero(counts)
            for piece in sources[int(number)].next_rows(int(counts[number]), columns)
        ]
        chunk = pa.concat_tables(pieces)
        by_source = np.argsort(numbers, kind="stable")
        if bool((by_source[1:] > by_source[:-1]).all()):
            yield chunk
            continue
        place = np.empty_like(by_source)
        place[by_source] = np.arange(len(by_source))
        yield chunk.combine_chunks().take(place)
