"""A run id -> its quarantined files restored -> a document that names the files that could not be restored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.counted import counted
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.records import RunDocument, document_path, load_document, require_writable
from nightkeep.records.sweep_marks import forget_sweep_mark
from nightkeep.retention.orphans.quarantine import restorable, restore
from nightkeep.retention.orphans.quarantine_manifest import PlannedMove
from nightkeep.retention.sweep import failures, full
from nightkeep.running.plan_digest import digest_of_undo, require_expected
from nightkeep.running.run_log import RunLog

_SHOWN: Final = 100
"""How many of the files that would be restored a document names."""


def restore_run(log: RunLog, table: OpenFiles, run: Run) -> RunDocument:
    """Restore the quarantined files of the run that the order names. A dry run lists them.

    Raises UsageError if the run has no files in quarantine, CorruptMetadata for a damaged quarantine manifest, and
    EvidenceError, before any file is moved, if the document cannot be stored.
    """
    table_files, restored = table.table_files(), log.order.removal.of_run or run.run_id
    root = table_files.storage.root
    log.extra["restored_run"] = restored
    with log.stage("restore"):
        vouched = [*_recorded_folders(log, root, restored)]
        if log.order.dry_run or log.order.expected_plan is not None:
            found = restorable(table_files, restored, vouched=vouched)
            require_expected(log, digest_of_undo(log, sorted((file.path, file.to, file.bytes) for file in found.moved)))
            if log.order.dry_run:
                return _listed(log, root, found.left)
        require_writable(log.order.reports, log.table)
        # What sweeps from the log counted as gone comes back: only a listing finds it again.
        forget_sweep_mark(log.order.reports, log.table)
        result = restore(table_files, restored, now_ms=run.now_ms, vouched=vouched)
    log.extra |= {"acted": {"files": result.files, "bytes": result.bytes}, "failed": failures(result.conflicts, root)}
    return log.document(result.outcome, result.reason)


def _listed(log: RunLog, root: str, found: Sequence[PlannedMove]) -> RunDocument:
    if not found:
        return log.document(Outcome.UNCHANGED, "no file would be restored")
    named = [f"would be restored: {full(root, file.path)}, {file.bytes:,} bytes" for file in found[:_SHOWN]]
    log.extra["notes"] = [*named, *([f"and {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else [])]
    size = sum(file.bytes for file in found)
    reason = f"dry run: {counted(len(found), 'file')} of {size:,} bytes would be restored, nothing was touched"
    return log.document(Outcome.SKIPPED, reason)


def _recorded_folders(log: RunLog, root: str, run_id: str) -> Iterator[str]:
    """Quarantines in this store that the run's documents name. They are elsewhere if the table has moved since."""
    prefix = f"{root.rstrip('/')}/"
    for operation in (Operation.SWEEP, Operation.EXPIRE):
        path = document_path(log.order.reports, log.table, run_id=run_id, operation=operation)
        # A document that cannot be read is skipped: the quarantines below the table may be all.
        with suppress(CorruptMetadata, FileNotFoundError):
            folder = load_document(path).extra.get("quarantine")
            if isinstance(folder, str) and folder.startswith(prefix):
                yield folder.removeprefix(prefix)
