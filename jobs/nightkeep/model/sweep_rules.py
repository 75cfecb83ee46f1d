"""What a sweep may do with files, and how old they must be."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DAY_MS: Final = 24 * 60 * 60 * 1000

AGES: Final[tuple[tuple[str, int | None], ...]] = (
    ("under a day", DAY_MS),
    ("1 to 7 days", 7 * DAY_MS),
    ("7 to 30 days", 30 * DAY_MS),
    ("30 to 90 days", 90 * DAY_MS),
    ("90 days or more", None),
)
"""Names of the age groups of orphan files, and the exclusive end of each in milliseconds. The last has no end."""


class SweepMode(StrEnum):
    """What to do with orphan files. The values are those of the command line."""

    DRY_RUN = "dry-run"
    """Report them; write nothing."""
    QUARANTINE = "quarantine"
    """Move them to a folder below the table's, to be restored or purged later."""
    DELETE = "delete"


class FoundBy(StrEnum):
    """How a sweep finds files that may be orphans. The values are those of the command line."""

    LISTING = "listing"
    """A listing of all of the table's folders, which also finds what no log names."""
    LOG = "log"
    """What the table's log records as removed, without a listing."""


def floor_ms(table_format: str) -> int:
    """The least age of files for a sweep, in milliseconds. Younger files may be those of a writer at work.

    Of Delta it is the 168 hours of VACUUM: writers that take days, and readers of old versions, rely on them.
    """
    return 7 * DAY_MS if table_format == "delta" else DAY_MS
