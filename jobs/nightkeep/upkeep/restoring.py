"""What one run put aside -> back where it was -> a document that names what is in the way."""

from __future__ import annotations

from nightkeep.model import Run
from nightkeep.report import RunDocument
from nightkeep.sweep.quarantine import restore
from nightkeep.territory import Sweeps
from nightkeep.upkeep.order import Log
from nightkeep.upkeep.sweeping import failures


def restored(log: Log, table: Sweeps, run: Run) -> RunDocument:
    """Raises UsageError where nothing of the run is in quarantine, CorruptMetadata for a list that is damaged."""
    territory = table.territory()
    with log.stage("restore"):
        found = restore(territory, run.run_id, now_ms=run.now_ms)
    log.extra |= {
        "restored_run": run.run_id,
        "acted": {"files": found.files, "bytes": found.bytes},
        "failed": failures(found.conflicts, territory.storage.root),
    }
    return log.document(found.outcome, found.reason)
