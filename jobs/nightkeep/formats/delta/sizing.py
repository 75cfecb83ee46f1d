"""How large files are and should be: bytes that are live, the target, what is worth a rewrite. Pure, metadata only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata import DataFile, DeltaSnapshot
from nightkeep.formats.delta.tuning import SMALL_SHARE, TARGET_BYTES
from nightkeep.model import Request

TARGET_PROPERTY: Final = "delta.targetFileSize"
_SIZE: Final = re.compile(r"\s*(\d+)\s*(?:([kmgtp]?)(?:i?b)?)\s*", re.IGNORECASE)
_UNITS: Final = {letter: 1 << 10 * power for power, letter in enumerate(("", "k", "m", "g", "t", "p"))}


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a request means by small and by worn. Bytes of files; the ratio is of physical rows."""

    target: int
    small: int
    max_deleted_ratio: float

    @classmethod
    def of(cls, snapshot: DeltaSnapshot, request: Request) -> Sizes:
        """Raises RefusedTable for a target in the table's properties that is no size."""
        target = request.target_bytes or _property(snapshot) or TARGET_BYTES
        small = request.min_bytes if request.min_bytes is not None else int(target * SMALL_SHARE)
        return cls(target, small, request.max_deleted_ratio)

    def is_worn(self, file: DataFile) -> bool:
        """Whether enough of it is deleted to purge its vector; always, where nobody knows how much."""
        if file.vector is None:
            return False
        return file.rows is None or file.deleted_rows > self.max_deleted_ratio * file.rows


def is_gone(file: DataFile) -> bool:
    """Whether a file has no rows any more, by its metadata."""
    return file.rows is not None and file.deleted_rows == file.rows


def live_bytes(file: DataFile) -> int:
    """The share of the file's size that its rows without the deleted ones take; the whole where that is not known."""
    if file.rows is None or not file.deleted_rows:
        return file.bytes
    return file.bytes * (file.rows - file.deleted_rows) // max(1, file.rows)


def total_live_bytes(files: Iterable[DataFile]) -> int:
    return sum(live_bytes(file) for file in files)


def file_count(size: int, target: int) -> int:
    """How many files near `target` hold `size` bytes; at least one."""
    return max(1, (2 * size + target) // (2 * target))


def _property(snapshot: DeltaSnapshot) -> int | None:
    text = snapshot.schema.configuration.get(TARGET_PROPERTY)
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if size <= 0:
        feature = f"{TARGET_PROPERTY} is {text!r}, which is no size"
        raise RefusedTable(snapshot.table.name, feature, "set it to one such as 256mb, or give a target size")
    return size
