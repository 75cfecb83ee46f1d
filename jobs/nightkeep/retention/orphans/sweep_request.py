"""The request and the results of a sweep, and of a restore."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS, FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals, SetCounts


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """What to sweep. Files younger than `older_than_ms` stay; `below_floor` allows less than the format's floor.

    The sweep is refused if it would remove more than 100 files and more than `max_share` of the listed files.
    `of_run`: remove only files that this run left. `keep`: versions that must stay readable. `purge_after_ms`: delete
    quarantines older than this; None: never. `outside`: also sweep places that may belong to another table; the caller
    vouches that no other table has files there. `found_by`: where candidates are from; from the log, they are those
    removed after `since`, or ever without it.
    """

    mode: SweepMode = SweepMode.DRY_RUN
    older_than_ms: int = 7 * DAY_MS
    below_floor: bool = False
    max_share: float = 0.5
    of_run: str | None = None
    keep: frozenset[int] = frozenset()
    purge_after_ms: int | None = 30 * DAY_MS
    outside: bool = False
    found_by: FoundBy = FoundBy.LISTING
    since: LogPoint | None = None

    def __post_init__(self) -> None:
        if self.older_than_ms < 0 or not 0 <= self.max_share <= 1:
            raise ValueError(f"{self}: expected an age of at least 0 and a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class FilesRemoved:
    """What became of the files of a removal.

    `gone`: no longer at their places. `left`: not removed, as they had changed or were already gone. `failed`: could
    not be removed, each with the reason. `unknown`: those of `failed` that may be gone. `folder`: the quarantine that
    they are in, or None.
    """

    gone: FileTotals = NO_FILES
    left: FileTotals = NO_FILES
    failed: tuple[tuple[str, str], ...] = ()
    folder: str | None = None
    unknown: FileTotals = NO_FILES


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep ended. `counted` is None if it was refused before the listing.

    `acted`: removed files. `left`, `failed`, `unknown`, `folder`: as in FilesRemoved. `purged`: files of old
    quarantines that were deleted. `closed`: run ids whose quarantine had open parts. `unseen`: folders that were not
    swept, as other tables may share them. `unreadable`: files that look like metadata of the table and cannot be read.
    `through`: the point up to which nothing that the log names as removed is left; None if files may be, or for a table
    without such a log.
    """

    outcome: Outcome
    reason: str
    counted: SetCounts | None
    cutoff_ms: int
    acted: FileTotals = NO_FILES
    left: FileTotals = NO_FILES
    failed: tuple[tuple[str, str], ...] = ()
    folder: str | None = None
    purged: FileTotals = NO_FILES
    closed: tuple[str, ...] = ()
    unknown: FileTotals = NO_FILES
    unseen: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    through: LogPoint | None = None

    @property
    def changed(self) -> bool:
        """Whether files were removed, or may have been."""
        return bool(self.acted.files or self.unknown.files)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore. `conflicts` are files that were not restored, each with the reason; existing copies stay
    in quarantine."""

    outcome: Outcome
    reason: str
    files: int = 0
    bytes: int = 0
    conflicts: tuple[tuple[str, str], ...] = ()
