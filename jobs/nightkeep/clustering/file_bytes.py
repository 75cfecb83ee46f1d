"""Rows and bytes of files -> the size of files that hold their rows in other portions. Pure, metadata only.

A file takes some bytes however few its rows are (footer, page headers, statistics, dictionaries), so that many small
files take more than one with the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nightkeep.clustering.sizing import Sizes, file_count, live_sizes
from nightkeep.clustering.tuning import COLUMN_BYTES, MOST_COLUMN_BYTES
from nightkeep.model.file_columns import UNKNOWN, FileColumns, Numbers, total

_SPREAD = 2
"""Files with this many times the rows of others show how size grows with rows."""


@dataclass(frozen=True, slots=True)
class FileBytes:
    """The bytes of a file: `fixed`, and `row` for each of its rows."""

    fixed: float
    row: float

    @classmethod
    def of_files(cls, files: FileColumns, sizes: Sizes) -> FileBytes | None:
        """What these files show; None if the rows of one are unknown."""
        return None if (files.rows == UNKNOWN).any() else cls._of(files.rows, files.bytes, sizes.columns)

    @classmethod
    def of(cls, sizes: Sequence[tuple[int, int]], *, columns: int) -> FileBytes:
        """What files of these rows and bytes show. Their sizes together are as given."""
        rows, size = np.asarray(sizes, np.int64).reshape(-1, 2).T
        return cls._of(rows, size, columns)

    @classmethod
    def _of(cls, counts: Numbers, sizes: Numbers, columns: int) -> FileBytes:
        if not len(counts):
            return cls(0.0, 0.0)
        rows, size = counts.astype(np.float64), sizes.astype(np.float64)
        fixed = _fixed(rows, size, columns)
        return cls(fixed, max(0.0, float(size.sum()) - fixed * len(size)) / max(1.0, float(rows.sum())))

    def size(self, rows: float, files: int = 1) -> int:
        """The bytes of `files` files with `rows` rows together."""
        return int(files * self.fixed + rows * self.row)

    def count(self, rows: float, target_bytes: int) -> int:
        """How many files near the target hold `rows` rows; at least one."""
        # A file that is mostly footer is written all the same.
        room = max(target_bytes / 4, target_bytes - self.fixed)
        return file_count(int(rows * self.row), max(1, int(room)))


def written_files(files: FileColumns, sizes: Sizes, found: FileBytes | None) -> tuple[int, int]:
    """How many files near the target the live rows of `files` become, and their bytes. `found`: what files show."""
    live = total(live_sizes(files))
    if found is None:
        return file_count(live, sizes.target), live
    rows = total(files.rows) - total(files.deleted_rows)
    count = found.count(rows, sizes.target)
    return count, found.size(rows, count)


def _fixed(rows: np.typing.NDArray[np.float64], size: np.typing.NDArray[np.float64], columns: int) -> float:
    least = float(size.min())
    if rows.max() < _SPREAD * max(1.0, float(rows.min())):
        return min(COLUMN_BYTES * columns, 0.75 * least)
    # The least squares of relative errors: small files show what is fixed, large ones what a row takes.
    terms = np.stack((1 / size, rows / size), axis=1)
    found = np.linalg.lstsq(terms, np.ones(len(size)), rcond=None)[0]
    return float(min(max(0.0, found[0]), MOST_COLUMN_BYTES * columns, least))
