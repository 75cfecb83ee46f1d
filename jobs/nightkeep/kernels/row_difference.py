"""Two multisets of rows, as hashes -> which rows of each the other lacks. Memory: 24 bytes for each row of both.

Rows with equal hashes of 128 bits count as equal, as in a fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from nightkeep.kernels.arrow_buffers import Words

Flags = npt.NDArray[np.bool_]
Hashes = tuple[Words, Words]
"""The two hashes of each row, in row order."""
_NONE: Final = np.empty(0, np.uint64)


class RowDifference:
    """Rows that one side has more often than the other, with the number of extra copies."""

    def __init__(self, after: Iterable[Hashes], before: Iterable[Hashes]) -> None:
        sides = [(_joined(side), sign) for side, sign in ((after, 1), (before, -1))]
        first, second = (np.concatenate([hashes[lane] for hashes, _ in sides]) for lane in (0, 1))
        counts = np.concatenate([np.full(len(hashes[0]), sign, np.int64) for hashes, sign in sides])
        order = np.lexsort((second, first))
        first, second, counts = first[order], second[order], counts[order]
        starts = np.ones(len(order), np.bool_)
        starts[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        at = np.flatnonzero(starts)
        sums = np.add.reduceat(counts, at) if len(at) else counts
        differs = sums != 0
        self._first, self._second, self._left = first[at][differs], second[at][differs], sums[differs]

    def __bool__(self) -> bool:
        """Whether any row is left that was not taken."""
        return bool(self._left.any())

    def added(self, rows: Hashes) -> Flags:
        """The rows of a batch of the side after that the other side lacks. Every batch is asked about once: of equal
        rows the first count."""
        return self._taken(rows, 1)

    def removed(self, rows: Hashes) -> Flags:
        """As `added`, of the side before."""
        return self._taken(rows, -1)

    def _taken(self, rows: Hashes, sign: int) -> Flags:
        places = self._places(rows)
        known = np.flatnonzero(places >= 0)
        order = known[np.argsort(places[known], kind="stable")]
        sorted_places = places[order]
        starts = np.searchsorted(sorted_places, sorted_places)
        taken = np.arange(len(order)) - starts < sign * self._left[sorted_places]
        flags = np.zeros(len(places), np.bool_)
        flags[order[taken]] = True
        np.subtract.at(self._left, sorted_places[taken], sign)
        return flags

    def _places(self, rows: Hashes) -> npt.NDArray[np.int64]:
        """The place of each row's hashes among those that differ; -1 where they are not."""
        first, second = rows
        places = np.searchsorted(self._first, first).astype(np.int64)
        open_rows = np.arange(len(places))
        while len(open_rows):
            at = places[open_rows]
            inside = at < len(self._first)
            same = np.zeros(len(at), np.bool_)
            same[inside] = self._first[at[inside]] == first[open_rows[inside]]
            places[open_rows[~same]] = -1
            open_rows, at = open_rows[same], at[same]
            # Rows that share the first hash alone are distinguished by the second, one by one.
            open_rows = open_rows[self._second[at] != second[open_rows]]
            places[open_rows] += 1
        return places


def _joined(batches: Iterable[Hashes]) -> Hashes:
    every = list(batches)
    first, second = (np.concatenate([_NONE, *(hashes[lane] for hashes in every)]) for lane in (0, 1))
    return first, second
