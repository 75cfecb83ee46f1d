"""Keys with new rows, with the place of the row that each had above those; and a store for many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa

from nightkeep.clustering.spill import Buckets, spilled
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile
from nightkeep.formats.paimon.rewrite.lookup import Hits
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import OrderBy, in_order

NO_ROW: Final = -1
"""The file and the position of a row that is not there."""
_PLACE = ["file", "position"]


@dataclass(frozen=True, slots=True)
class Touched:
    """Keys with new rows, unique, in key order, and the rows that they had above those.

    `file` is the number of a row's file among `files`, NO_ROW for a key without a row; `position` its place in it.
    """

    keys: pa.Table
    files: tuple[PaimonDataFile, ...]
    file: Rows
    position: Rows

    def with_found(self, hits: Sequence[Hits]) -> Touched:
        """With the rows that a lookup found. Its wanted keys are those without a row, in order."""
        numbers = {file.name: number for number, file in enumerate(self.files)}
        file, position, missing = self.file.copy(), self.position.copy(), np.flatnonzero(self.file == NO_ROW)
        for hit in hits:
            at = missing[hit.wanted]
            file[at], position[at] = numbers[hit.file.name], hit.positions
        return Touched(self.keys, self.files, file, position)

    def without_rows(self) -> Touched:
        """Only the keys that had no row."""
        none = self.file == NO_ROW
        return Touched(self.keys.filter(pa.array(none)), self.files, self.file[none], self.position[none])


def untouched_above(keys: pa.Table, files: Sequence[PaimonDataFile]) -> Touched:
    """Keys of which no merged file has a row that is not new."""
    none = np.full(keys.num_rows, NO_ROW, np.int64)
    return Touched(keys, tuple(files), none, none)


def touched_keys(
    rows: pa.Table,
    keys: Sequence[str],
    files: Sequence[PaimonDataFile],
    *,
    level: str,
    place: tuple[str, str],
    lowest_known: int = 1,
) -> Touched:
    """The keys of `rows` that have a row below level `lowest_known`. From it on, `rows` have at most one row of a key.

    `level` and `place` name the columns of a row's level, and of its file's number and its position in the file.
    """
    ordered, starts = in_order(rows.select([*keys, level]), keys=keys, order=[OrderBy(level)])
    levels = rows.column(level).to_numpy()[ordered]
    ends = np.append(starts[1:], len(ordered)) - 1
    lifted = levels[starts] < lowest_known if len(starts) else np.zeros(0, np.bool_)
    starts, ends = starts[lifted], ends[lifted]
    above = levels[ends] >= lowest_known
    file, position = (
        np.where(above, rows.column(name).to_numpy()[ordered[ends]].astype(np.int64), NO_ROW) for name in place
    )
    return Touched(rows.select(keys).take(ordered[starts]), tuple(files), file, position)


class TouchedStore:
    """Touched keys by range of keys, in the order in which they were added. Of several ranges all are kept on disk."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._held: Touched | None = None
        self._files: tuple[PaimonDataFile, ...] = ()
        self._spill: Buckets | None = None

    def __enter__(self) -> TouchedStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def add(self, touched: Touched) -> None:
        """All have the same `files`."""
        if self._held is None and self._spill is None:
            self._held, self._files = touched, touched.files
            return
        if self._spill is None:
            self._spill = self._open.enter_context(spilled(1))
        for each in (self._held, touched):
            if each is not None:
                rows = each.keys.append_column(_PLACE[0], pa.array(each.file))
                rows = rows.append_column(_PLACE[1], pa.array(each.position))
                self._spill.add(rows, np.zeros(rows.num_rows, np.int64))
        self._held = None

    def ranges(self) -> Iterator[Touched]:
        """What was added. Nothing can be added afterwards."""
        if self._held is not None:
            yield self._held
        if self._spill is not None:
            self._spill.close()
            for batch in self._spill.batches(0):
                rows = pa.Table.from_batches([batch])
                file, position = (rows.column(name).to_numpy() for name in _PLACE)
                yield Touched(rows.drop_columns(_PLACE), self._files, file, position)
