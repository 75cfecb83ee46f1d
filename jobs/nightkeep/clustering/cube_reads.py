"""Bounds of a unit's cubes -> what narrow queries read of them, as they are and as one cube. Pure, metadata only.

A query reads the row groups that may hold its rows. The files that it opens follow from their bounds. Within a file
rows are in the order of the curve, but no metadata has the bounds of row groups: how many of them a query reads follows
from their number, as on a curve that is cut more finely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nightkeep.clustering.clustered_files import F
from nightkeep.clustering.sizing import row_group_bytes, total_live_bytes
from nightkeep.clustering.tuning import APART_READS, MERGED_GAIN, Z_TOUCHED
from nightkeep.kernels.skipping import FileBounds, queries_of, skipped_share

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CubeReads:
    """Cubes by ascending size, of which the largest shows how well the curve separates values.

    `sizes` has the live bytes of each. `reads` has the bytes that a query of 1 % of the unit's rows reads of each, a
    row a cube and a column a clustering column. `largest` has the share of the largest cube that a query of 1 % of its
    own rows reads.
    """

    sizes: Longs
    reads: Floats
    largest: Floats

    @classmethod
    def of(
        cls,
        cubes: Sequence[Sequence[F]],
        bounds: Callable[[Sequence[F]], Mapping[str, FileBounds]],
        columns: Sequence[str],
        *,
        target_bytes: int,
    ) -> CubeReads:
        """The reads of at least one cube. `bounds` returns the bounds of each column for some files, in their order."""
        sizes = np.array([total_live_bytes(cube) for cube in cubes], np.int64)
        counts = np.array([len(cube) for cube in cubes], np.int64)
        within = _within(counts, sizes, len(columns), target_bytes=target_bytes)
        every = bounds([file for cube in cubes for file in cube])
        stops = np.cumsum(counts).tolist()
        opened = np.stack([_opened(every[name], stops) for name in columns], axis=1)
        last = [_part(every[name], stops[-1] - len(cubes[-1]), stops[-1]) for name in columns]
        own = np.array([1 - skipped_share(each, queries_of(each)) for each in last])
        return cls(sizes, opened * (within * sizes)[:, None], np.minimum(1.0, own * within[-1]))

    def worth_merging(self, start: int, *, new: int) -> tuple[int, float]:
        """Up to which cube those from `start` on are worth a rewrite, together with a cube of `new` bytes; `start` if
        none are. And how many times as much queries read of them apart as of one cube.

        Queries use each clustering column equally often.
        """
        sizes = new + np.cumsum(self.sizes[start:])
        apart = self._of_one(np.array([new])) + np.cumsum(self.reads[start:].mean(axis=1))
        together = self._of_one(sizes)
        worth = np.flatnonzero((apart >= APART_READS * together) & (apart - together >= MERGED_GAIN * sizes))
        if not len(worth):
            return start, 1.0
        last = int(worth[-1])
        return start + last + 1, float(apart[last] / together[last])

    def _of_one(self, sizes: Longs) -> Floats:
        """The bytes that a query reads on average of one cube, for each size in bytes."""
        parts = np.maximum(sizes, 1) / max(int(self.sizes[-1]), 1)
        shares = np.minimum(1.0, np.outer(parts ** (-1 / len(self.largest)), self.largest))
        read: Floats = sizes * shares.mean(axis=1)
        return read


def _within(counts: Longs, sizes: Longs, columns: int, *, target_bytes: int) -> Floats:
    """For cubes of so many files and bytes, the share that a query reads of the files that it opens."""
    groups = np.maximum(counts, sizes // row_group_bytes(target_bytes))
    return _touched(groups, columns) / _touched(counts, columns)


def _touched(parts: Longs, columns: int) -> Floats:
    """The share of the parts of a cube that a narrow range of one column touches."""
    touched: Floats = np.minimum(1.0, Z_TOUCHED * parts ** (-1 / columns))
    return touched


def _opened(every: FileBounds, stops: Sequence[int]) -> Floats:
    """The share of each cube's files that a query of the whole unit opens. A cube's files end at its stop."""
    queries = queries_of(every)
    return np.array([1 - skipped_share(_part(every, *span), queries) for span in pairwise((0, *stops))])


def _part(every: FileBounds, start: int, stop: int) -> FileBounds:
    count = stop - start
    return FileBounds(every.lows.slice(start, count), every.highs.slice(start, count), every.rows[start:stop])
