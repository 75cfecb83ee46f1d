"""A run id -> its quarantined files restored -> a document that names the files that could not be restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Run
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.records import RunDocument, document_path, load_document, require_writable
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.sweep import failures
from nightkeep.running.run_log import RunLog


def restore_run(log: RunLog, table: OpenFiles, run: Run) -> RunDocument:
    """Restore the run's quarantined files.

    Raises UsageError if the run has no files in quarantine, CorruptMetadata for a damaged quarantine manifest, and
    EvidenceError, before any file is moved, if the document cannot be stored.
    """
    table_files = table.table_files()
    require_writable(log.order.reports, log.table)
    with log.stage("restore"):
        vouched = [*_recorded_folders(log, table_files.storage.root)]
        result = restore(table_files, run.run_id, now_ms=run.now_ms, vouched=vouched)
    log.extra |= {
        "restored_run": run.run_id,
        "acted": {"files": result.files, "bytes": result.bytes},
        "failed": failures(result.conflicts, table_files.storage.root),
    }
    return log.document(result.outcome, result.reason)


def _recorded_folders(log: RunLog, root: str) -> Iterator[str]:
    """Quarantines in this store that the run's documents name. They are elsewhere if the table has moved since."""
    prefix = f"{root.rstrip('/')}/"
    for operation in (Operation.SWEEP, Operation.EXPIRE):
        path = document_path(log.order.reports, log.table, run_id=log.order.run_id, operation=operation)
        # A document that cannot be read is skipped: the quarantines below the table may be all.
        with suppress(CorruptMetadata, FileNotFoundError):
            folder = load_document(path).extra.get("quarantine")
            if isinstance(folder, str) and folder.startswith(prefix):
                yield folder.removeprefix(prefix)
