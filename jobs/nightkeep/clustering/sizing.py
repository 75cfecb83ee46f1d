"""Files and request -> live bytes, the target size, and which files are worth a rewrite. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nightkeep.clustering.clustered_files import SizedFile
from nightkeep.clustering.tuning import BATCH_BYTES, DECODED, LEAST_BATCH_ROWS, MAX_DELETED_RATIO, MOST_BATCH_ROWS
from nightkeep.model import Request


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
        cls, request: Request, target: int, *, small_share: float, large_share: float | None = None, fewest: int = 2,
        max_deleted_ratio: float = MAX_DELETED_RATIO, columns: int = 0,
    ) -> Sizes:  # fmt: skip
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

    def is_small(self, file: SizedFile) -> bool:
        return file.bytes < self.small

    def is_large(self, file: SizedFile) -> bool:
        return self.large is not None and file.bytes > self.large


def is_gone(file: SizedFile) -> bool:
    """Whether a file has no live rows, by its metadata."""
    return file.rows is not None and file.deleted_rows == file.rows


def live_bytes(file: SizedFile) -> int:
    """The file's bytes in proportion to its live rows; all bytes if row counts are unknown."""
    if file.rows is None or not file.deleted_rows:
        return file.bytes
    return file.bytes * (file.rows - file.deleted_rows) // max(1, file.rows)


def total_live_bytes(files: Iterable[SizedFile]) -> int:
    return sum(live_bytes(file) for file in files)


def file_count(size: int, target: int) -> int:
    """How many files near `target` hold `size` bytes; at least one."""
    return max(1, (2 * size + target) // (2 * target))


def batch_rows(file_bytes: int, rows: int) -> int:
    """How many rows of a file to read at once."""
    row_bytes = DECODED * file_bytes / max(1, rows)
    return int(min(MOST_BATCH_ROWS, max(LEAST_BATCH_ROWS, BATCH_BYTES / max(1, row_bytes))))
