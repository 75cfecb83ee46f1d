"""One unit at two versions -> the rows of each that the other does not have at the same place, as fingerprints.

A row at the same place of the same file is the same row: files are never changed. It is not read. Every other row is
read once. So a compaction costs one read of the files that it took, and one of those that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Final, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.auditing.row_values import json_rows
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.kernels.row_difference import RowDifference
from nightkeep.model import Fingerprint, View
from nightkeep.protocol import Gate, Positions
from nightkeep.protocol.gate import no_rows
from nightkeep.protocol.hashed_rows import fingerprint, row_hashes
from nightkeep.protocol.past import KeepsRows
from nightkeep.protocol.positions import ComparedPositions, compare_positions
from nightkeep.protocol.work import S, U
from nightkeep.records.check_report import Difference, Row

SAMPLE_ROWS: Final = 20
"""Rows of a difference that are kept, on either side."""
_MOST_ROWS: Final = 100_000_000
"""Rows of both sides whose hashes are held to find those that differ: 24 bytes each."""


@dataclass(frozen=True, slots=True)
class MovedRows(Generic[S, U]):
    """The rows of one side of a unit that the other has not at the same place. Without `unit` there are none. `keeps`:
    which of them count."""

    gate: Gate[S, U]
    unit: U | None
    positions: Positions
    clock_ms: int | None = None
    keeps: KeepsRows | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, each time read anew."""
        if self.unit is None:
            return
        for batch in chain(self.gate.rows(self.unit, self.positions), self.gate.merged(self.unit, View.MERGED)):
            if self.clock_ms is None:
                yield batch
            else:
                rows = self.gate.unexpired(self.unit, without_views(batch), self.clock_ms)
                yield rows if self.keeps is None else self.keeps(rows)

    @property
    def count(self) -> int:
        """The number of rows that have a position."""
        return sum(map(len, self.positions.values()))

    def total(self) -> Fingerprint:
        return reduce(add, map(fingerprint, self.batches()), Fingerprint())


def moved_rows(
    gate: Gate[S, U], before: U | None, after: U | None, *, clock_ms: int | None = None, keeps: KeepsRows | None = None
) -> tuple[MovedRows[S, U], MovedRows[S, U]]:
    """Both sides, in the view that merges what was committed. Reads deletes and, of a table with keys, keys.

    `clock_ms`: rows that have expired by this time count on neither side. `keeps`: those of them that count then.
    """
    places = _compared(gate, before, after)
    return (
        MovedRows(gate, before, places.before, clock_ms, keeps),
        MovedRows(gate, after, places.after, clock_ms, keeps),
    )


@dataclass(frozen=True, slots=True)
class RowsApart:
    """The rows that differ. `doubled`: how many of the extra ones the side after has elsewhere as well."""

    difference: Difference
    doubled: int


def rows_apart(before: MovedRows[S, U], after: MovedRows[S, U], kept: MovedRows[S, U]) -> RowsApart:
    """Which of the moved rows differ, with examples as values. `kept`: the rows of the side after that did not move."""
    rows = before.count + after.count
    if rows > _MOST_ROWS:
        note = f"{rows:,} rows of both sides are too many to find those that differ"
        return RowsApart(Difference(note=note), 0)
    old = [row_hashes(batch) for batch in before.batches()]
    found = RowDifference((row_hashes(batch) for batch in after.batches()), old)
    missing, missing_rows, _ = _taken(before.batches, found.removed)
    extra, extra_rows, hashes = _taken(after.batches, found.added)
    columns = _unlike(before, after) if missing and extra else ()
    difference = Difference(missing, extra, missing_rows, extra_rows, columns=columns)
    return RowsApart(difference, _doubled(hashes, [first for first, _ in old], kept) if extra else 0)


def _doubled(extra: _Numbers, old: Sequence[_Numbers], kept: MovedRows[S, U]) -> int:
    """How many of the extra rows equal one that the side before has: moved or kept."""
    is_known = np.isin(extra, np.concatenate([np.empty(0, np.uint64), *old]))
    for batch in kept.batches() if not is_known.all() else ():
        is_known |= np.isin(extra, row_hashes(batch)[0])
    return int(is_known.sum())


_Numbers = npt.NDArray[np.uint64]
_Take = Callable[[tuple[_Numbers, _Numbers]], npt.NDArray[np.bool_]]


def _taken(batches: Callable[[], Iterator[pa.RecordBatch]], take: _Take) -> tuple[int, tuple[Row, ...], _Numbers]:
    """How many rows are taken, the first of them, and the first hash of each."""
    count, shown, hashes = 0, list[Row](), [np.empty(0, np.uint64)]
    for batch in batches():
        own = row_hashes(batch)
        flags = take(own)
        places = np.flatnonzero(flags)
        count += len(places)
        hashes.append(own[0][places])
        left = SAMPLE_ROWS - len(shown)
        if left and len(places):
            shown += json_rows(without_views(batch).take(places[:left]))
    return count, tuple(shown), np.concatenate(hashes)


def _unlike(before: MovedRows[S, U], after: MovedRows[S, U]) -> tuple[str, ...]:
    """Columns whose values differ as multisets."""
    sides = [_by_column(side.batches()) for side in (before, after)]
    return tuple(name for name in sides[0] if sides[0][name] != sides[1].get(name))


def _by_column(batches: Iterator[pa.RecordBatch]) -> Mapping[str, Fingerprint]:
    sums: dict[str, Fingerprint] = {}
    for batch in batches:
        for name in batch.schema.names:
            sums[name] = sums.get(name, Fingerprint()) + fingerprint(batch.select([name]))
    return sums


def kept_rows(gate: Gate[S, U], before: U | None, after: U | None) -> MovedRows[S, U]:
    """The rows of `after` at places that both sides have."""
    # Merged rows have no place.
    plain = replace(gate, merged=no_rows)
    return MovedRows(plain, after, _compared(gate, before, after).both)


def _compared(gate: Gate[S, U], before: U | None, after: U | None) -> ComparedPositions:
    truth, shown = ({} if unit is None else gate.survivors(unit, View.MERGED) for unit in (before, after))
    return compare_positions(truth, shown)
