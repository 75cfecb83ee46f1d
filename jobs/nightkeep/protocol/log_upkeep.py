"""What a format provides for the upkeep of a table's log, apart from its data files: plan, then carry out.

Every version that the log can rebuild after `carry_out` reads as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nightkeep.model import Run


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What the caller asks for, besides the table's own options; what keeps more applies.

    `keep`: versions that have to stay readable: those of runs that no check has judged, and the last that an audit
    judged. `removes`: whether log files may be removed at all.
    """

    now_ms: int
    keep: frozenset[int] = frozenset()
    older_than_ms: int | None = None
    retain_last: int | None = None
    removes: bool = True


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What is to be done: `checkpoints` to write, by version, oldest first; then `files` to remove, each with its
    bytes: those of versions before `oldest`. `notes` state why nothing, or no more, is done."""

    checkpoints: tuple[int, ...] = ()
    oldest: int | None = None
    files: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    def __bool__(self) -> bool:
        return bool(self.checkpoints or self.files)


@dataclass(frozen=True, slots=True)
class LogResult:
    """What was done. `failed`: files that could not be removed, each with the reason; none after them was tried."""

    checkpoints: tuple[int, ...] = ()
    oldest: int | None = None
    removed: tuple[tuple[str, int], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.removed)


@dataclass(frozen=True, slots=True)
class LogUpkeep:
    """Functions of a format. Both pickle, and raise EvidenceError for a log that contradicts itself, and OSError."""

    plan: Callable[[LogRequest], LogPlan]
    """From metadata alone; changes nothing. A table whose log we may not change has notes alone."""
    carry_out: Callable[[LogRequest, Run], LogResult]
    """Plans anew, and does that."""
