"""How large files are and should be: bytes that are live, the target, what is worth a rewrite. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nightkeep.clustering.clustered_files import SizedFile
from nightkeep.clustering.tuning import BATCH_BYTES, DECODED, LEAST_BATCH_ROWS, MOST_BATCH_ROWS
from nightkeep.model import Request


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a request means by small, by worn and by large. Bytes of files; the ratio is of physical rows.

    No file is large where `large` is None. Fewer small files of a unit than `fewest` are left alone.
    """

    target: int
    small: int
    max_deleted_ratio: float
    large: int | None = None
    fewest: int = 2

    @classmethod
    def of(
        cls, request: Request, target: int, *, small_share: float, large_share: float | None = None, fewest: int = 2
    ) -> Sizes:
        """What the request says, else these shares of the target."""
        small = request.min_bytes if request.min_bytes is not None else int(target * small_share)
        large = None if large_share is None else int(target * large_share)
        return cls(target, small, request.max_deleted_ratio, large, fewest)

    def is_worn(self, file: SizedFile) -> bool:
        """Whether enough of it is deleted to purge its deletes; always, where nobody knows how much."""
        if not file.deletes:
            return False
        return file.rows is None or file.deleted_rows > self.max_deleted_ratio * file.rows

    def is_small(self, file: SizedFile) -> bool:
        return file.bytes < self.small

    def is_large(self, file: SizedFile) -> bool:
        return self.large is not None and file.bytes > self.large


def is_gone(file: SizedFile) -> bool:
    """Whether a file has no rows any more, by its metadata."""
    return file.rows is not None and file.deleted_rows == file.rows


def live_bytes(file: SizedFile) -> int:
    """The share of the file's size that its rows without the deleted ones take; the whole where that is not known."""
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
