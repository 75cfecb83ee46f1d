"""Files and request -> live bytes, the target size, and which files are worth a rewrite. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nightkeep.clustering.tuning import (
    BATCH_BYTES,
    DECODED,
    GROUPS_PER_FILE,
    LEAST_BATCH_ROWS,
    LEAST_GROUP_BYTES,
    MAX_DELETED_RATIO,
    MOST_BATCH_ROWS,
    MOST_GROUP_BYTES,
)
from nightkeep.model import Request
from nightkeep.model.file_columns import UNKNOWN, FileColumns, Flags, Numbers, SizedFile, columns_of, total


@dataclass(frozen=True, slots=True)
class Sizes:
    """Limits for small, large and worn files, in bytes; the ratio is of deleted to all rows of a file.

    No file is large if `large` is None. Fewer small files in a unit than `fewest` are left alone. `columns`: of a file.
    """

    target: int
    small: int
    max_deleted_ratio: float
    large: int | None = None
    fewest: int = 2
    columns: int = 0

    @classmethod
    def of(
        cls,
        request: Request,
        target: int,
        *,
        small_share: float,
        large_share: float | None = None,
        fewest: int = 2,
        max_deleted_ratio: float = MAX_DELETED_RATIO,
        columns: int = 0,
    ) -> Sizes:
        """The limits of the request, else these shares of the target and this ratio."""
        small = request.min_bytes if request.min_bytes is not None else int(target * small_share)
        large = None if large_share is None else int(target * large_share)
        ratio = max_deleted_ratio if request.max_deleted_ratio is None else request.max_deleted_ratio
        return cls(target, small, ratio, large, fewest, columns)

    def is_worn(self, file: SizedFile) -> bool:
        """Whether enough rows are deleted to rewrite the file; always if the number of deleted rows is unknown."""
        if not file.deletes:
            return False
        return file.rows is None or file.deleted_rows > self.max_deleted_ratio * file.rows

    def are_worn(self, files: FileColumns) -> Flags:
        """As is_worn, for each file."""
        many = (files.rows == UNKNOWN) | (files.deleted_rows > self.max_deleted_ratio * files.rows)
        worn: Flags = (files.deletes > 0) & many
        return worn

    def are_small(self, files: FileColumns) -> Flags:
        return files.bytes < self.small

    def are_large(self, files: FileColumns) -> Flags:
        return np.zeros(len(files), np.bool_) if self.large is None else files.bytes > self.large


def is_gone(file: SizedFile) -> bool:
    """Whether a file has no live rows, by its metadata."""
    return file.rows is not None and file.deleted_rows == file.rows


def are_gone(files: FileColumns) -> Flags:
    """As is_gone, for each file."""
    gone: Flags = files.deleted_rows == files.rows
    return gone


def live_bytes(file: SizedFile) -> int:
    """The file's bytes in proportion to its live rows; all bytes if row counts are unknown."""
    if file.rows is None or not file.deleted_rows:
        return file.bytes
    return file.bytes * (file.rows - file.deleted_rows) // max(1, file.rows)


def live_sizes(files: FileColumns) -> Numbers:
    """As live_bytes, for each file."""
    live = files.bytes.copy()
    worn = np.flatnonzero((files.rows != UNKNOWN) & (files.deleted_rows > 0))
    # Bytes times rows take more than 64 bits.
    size, rows, deleted = (values[worn].astype(object) for values in (files.bytes, files.rows, files.deleted_rows))
    live[worn] = (size * (rows - deleted) // np.maximum(1, rows)).astype(np.int64)
    return live


def total_live_bytes(files: Sequence[SizedFile]) -> int:
    return total(live_sizes(columns_of(files)))


def file_count(size: int, target: int) -> int:
    """How many files near `target` hold `size` bytes; at least one."""
    return max(1, (2 * size + target) // (2 * target))


def row_group_bytes(target: int) -> int:
    """The stored size of the row groups in clustered files near `target`."""
    return min(MOST_GROUP_BYTES, max(LEAST_GROUP_BYTES, target // GROUPS_PER_FILE))


def batch_rows(file_bytes: int, rows: int) -> int:
    """How many rows of a file to read at once."""
    row_bytes = DECODED * file_bytes / max(1, rows)
    return int(min(MOST_BATCH_ROWS, max(LEAST_BATCH_ROWS, BATCH_BYTES / max(1, row_bytes))))
