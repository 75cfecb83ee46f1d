"""What is asked of a sweep, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nightkeep.model import Outcome
from nightkeep.protocol.table_files import DAY_MS
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals, SetCounts


class SweepMode(StrEnum):
    """What is done with files that nothing needs; the values are the command line's."""

    DRY_RUN = "dry-run"
    """Told, and nothing is written anywhere."""
    QUARANTINE = "quarantine"
    """Put aside below the table's folder, to be restored or purged later."""
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """What to sweep. Files younger than `older_than_ms` stay; `below_floor` allows less than the format's floor.

    Acting is refused where more than 100 files and more than `max_share` of what was listed would go. `of_run`: only
    files that this run of ours left. `keep`: versions that must stay readable. What was put aside more than
    `purge_after_ms` ago is deleted; None: never. `outside`: places that the format alone cannot tell from another
    table's are looked into as well: whoever asks vouches that no other table has files there.
    """

    mode: SweepMode = SweepMode.DRY_RUN
    older_than_ms: int = 7 * DAY_MS
    below_floor: bool = False
    max_share: float = 0.5
    of_run: str | None = None
    keep: frozenset[int] = frozenset()
    purge_after_ms: int | None = 30 * DAY_MS
    outside: bool = False

    def __post_init__(self) -> None:
        if self.older_than_ms < 0 or not 0 <= self.max_share <= 1:
            raise ValueError(f"{self}: expected an age of at least 0 and a share between 0 and 1")


@dataclass(frozen=True, slots=True)
class FilesRemoved:
    """What became of files that were to go: `gone` are no longer where they were, `left` had changed or were gone
    already, `failed` could not be removed, each with the reason; of them nobody knows whether `unknown` are gone.
    `folder` is where they are, None: nowhere."""

    gone: FileTotals = NO_FILES
    left: FileTotals = NO_FILES
    failed: tuple[tuple[str, str], ...] = ()
    folder: str | None = None
    unknown: FileTotals = NO_FILES


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How a sweep ended. `counted` is None where it was refused before anything was listed.

    `acted` counts files that went, `left` those that changed between the look and the act. `folder` is the quarantine
    they are in. `unknown` are among `failed`, and gone or not. `purged` counts files of old quarantines, `closed` names
    runs whose quarantine had been cut short. `unseen`: folders that were not looked into, as other tables may share
    them.
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

    @property
    def changed(self) -> bool:
        """Whether files went, or may have gone."""
        return bool(self.acted.files or self.unknown.files)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What came back of one run's quarantine; `conflicts` did not, each with the reason, and their copies are kept."""

    outcome: Outcome
    reason: str
    files: int = 0
    bytes: int = 0
    conflicts: tuple[tuple[str, str], ...] = ()
