"""Files put aside: below the table's folder, found by no engine, brought back byte for byte, purged after a while."""

from __future__ import annotations

from nightkeep.model import Run
from nightkeep.sweep.order import Restored
from nightkeep.sweep.sets import Tally
from nightkeep.territory import Territory


def restore(territory: Territory, run_id: str, *, now_ms: int) -> Restored:
    """Bring back what the run put aside, or as much of it as it got to. Overwrites nothing. May be called again.

    Raises UsageError where nothing of the run is in quarantine, CorruptMetadata for a list of files that is damaged.
    """
    raise NotImplementedError


def purge(territory: Territory, *, now_ms: int, older_than_ms: int) -> Tally:
    """Delete quarantines whose last file was put aside longer ago, oldest first; never one that was cut short."""
    raise NotImplementedError


def close(territory: Territory, run: Run) -> tuple[str, ...]:
    """Settle every quarantine that was cut short, so that each file is in one place; ids of their runs.

    Raises RefusedTable where another run may still be at work on one.
    """
    raise NotImplementedError
