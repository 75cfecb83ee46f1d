"""Bounds of a unit's cubes -> what narrow queries read of them, as they are and as one cube. Pure, metadata only.

A query reads the row groups that may hold its rows. The files that it opens follow from their bounds. Within a file
rows are in the order of the curve, but no metadata has the bounds of row groups: how many of them a query reads follows
from their number, as on a curve that is cut more finely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nightkeep.clustering.clustered_files import F
from nightkeep.clustering.sizing import row_group_bytes, total_live_bytes
from nightkeep.clustering.tuning import APART_READS, LEAST_GAIN, Z_TOUCHED
from nightkeep.kernels.skipping import FileBounds, queries_of, skipped_share

Shares = npt.NDArray[np.float64]
"""Shares by clustering column, from 0 to 1."""


@dataclass(frozen=True, slots=True, eq=False)
class CubeReads:
    """Cubes by ascending size, of which the largest shows how well the curve separates values.

    `sizes` has the live bytes of each. `reads` has the bytes that a query of 1 % of the unit's rows reads of each, a
    row a cube and a column a clustering column. `largest` has the share of the largest cube that a query of 1 % of its
    own rows reads.
    """

    sizes: npt.NDArray[np.int64]
    reads: npt.NDArray[np.float64]
    largest: Shares

    @classmethod
    def of(
        cls,
        cubes: Sequence[Sequence[F]],
        bounds: Callable[[Sequence[F]], Mapping[str, FileBounds]],
        columns: Sequence[str],
        *,
        target_bytes: int,
    ) -> CubeReads:
        """The reads of at least one cube, from the bounds of its files by column."""
        sizes = np.array([total_live_bytes(cube) for cube in cubes], np.int64)
        within = np.array(
            [
                _within(len(cube), int(size), len(columns), target_bytes=target_bytes)
                for cube, size in zip(cubes, sizes, strict=True)
            ]
        )
        held, every = [bounds(cube) for cube in cubes], bounds([file for cube in cubes for file in cube])
        opened = np.array([_opened(held, every[name], name) for name in columns]).T
        own = np.array([1 - skipped_share(held[-1][name], queries_of(held[-1][name])) for name in columns])
        return cls(sizes, opened * (within * sizes)[:, None], np.minimum(1.0, own * within[-1]))

    def worth_merging(self, start: int, *, new: int) -> tuple[int, float]:
        """Up to which cube those from `start` on are worth a rewrite, together with a cube of `new` bytes; `start` if
        none are. And how many times as much queries read of them apart as of one cube.

        Queries use each clustering column equally often.
        """
        sizes = new + np.cumsum(self.sizes[start:])
        apart = self._of_one(np.array([new])) + np.cumsum(self.reads[start:].mean(axis=1))
        together = self._of_one(sizes)
        worth = np.flatnonzero((apart >= APART_READS * together) & (apart - together >= LEAST_GAIN * sizes))
        if not len(worth):
            return start, 1.0
        last = int(worth[-1])
        return start + last + 1, float(apart[last] / together[last])

    def _of_one(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The bytes that a query reads on average of one cube, for each size in bytes."""
        parts = np.maximum(sizes, 1) / max(int(self.sizes[-1]), 1)
        shares = np.minimum(1.0, np.outer(parts ** (-1 / len(self.largest)), self.largest))
        read: npt.NDArray[np.float64] = sizes * shares.mean(axis=1)
        return read


def _within(files: int, size: int, columns: int, *, target_bytes: int) -> float:
    """The share that a query reads of the files that it opens."""
    groups = max(files, size // row_group_bytes(target_bytes))
    return _touched(groups, columns) / _touched(files, columns)


def _touched(parts: int, columns: int) -> float:
    """The share of the parts of a cube that a narrow range of one column touches."""
    return float(min(1.0, Z_TOUCHED * parts ** (-1 / columns)))


def _opened(cubes: Sequence[Mapping[str, FileBounds]], every: FileBounds, name: str) -> list[float]:
    """The share of each cube's files that a query of the whole unit opens."""
    queries = queries_of(every)
    return [1 - skipped_share(cube[name], queries) for cube in cubes]
