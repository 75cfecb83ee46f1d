"""Removals of files -> two commits in the table's history: VACUUM START and VACUUM END.

VacuumCommand.scala (logVacuumStart, logVacuumEnd), DeltaOperations.scala (VacuumStart, VacuumEnd). Neither commit
changes what readers see. Like delta-spark, none is written to S3, where its own writers cannot create exclusively.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from nightkeep.errors import EvidenceError, UnknownOutcome
from nightkeep.formats.delta.metadata.actions import Raw, line, long_value, parse_lines
from nightkeep.formats.delta.metadata.head import LogHead, head
from nightkeep.formats.delta.metadata.naming import commit_name, staged_name
from nightkeep.formats.delta.retention.horizon import tombstone_retention_ms
from nightkeep.model import Address, Run
from nightkeep.model.run_names import committer
from nightkeep.model.version import __version__
from nightkeep.protocol.table_files import Removal
from nightkeep.storage import Storage

MAX_ATTEMPTS = 20
"""How many races in a row may be lost before giving up, as for our other commits."""
Figures = tuple[str, Raw, Mapping[str, int]]
"""Operation, parameters and metrics of a commit."""
_LOGGED = frozenset({"", "file", "hdfs", "abfs", "abfss", "adl", "wasb", "wasbs", "gs"})
"""Schemes of stores on which delta-spark logs a VACUUM (supportedFsForLogging)."""


def announce(address: Address, storage: Storage, removal: Removal, run: Run) -> None:
    """Commit VACUUM START before files are deleted.

    Raises RefusedTable, UnknownOutcome, and EvidenceError after lost races. Then nothing may be deleted.
    """

    def started(newest: LogHead) -> Figures:
        retention = {} if removal.older_than_ms is None else {"specifiedRetentionMillis": removal.older_than_ms}
        parameters = {
            # Always true here: the table's own retention is never shortened.
            "retentionCheckEnabled": True,
            "defaultRetentionMillis": tombstone_retention_ms(newest.metadata),
            **retention,
        }
        return "VACUUM START", parameters, {"numFilesToDelete": removal.files, "sizeOfDataToDelete": removal.bytes}

    _publish(address, storage, run, started)


def conclude(address: Address, storage: Storage, removal: Removal, run: Run) -> None:
    """Commit VACUUM END. Raises as announce does; the files are already deleted."""

    def ended(newest: LogHead) -> Figures:
        if removal.failed:
            return "VACUUM END", {"status": "FAILED"}, {}
        # Folders are not removed: readers ignore an empty one.
        counts = {"numDeletedFiles": removal.files, "numVacuumedDirectories": 0}
        return "VACUUM END", {"status": "COMPLETED"}, counts

    _publish(address, storage, run, ended)


def _publish(address: Address, storage: Storage, run: Run, figures_of: Callable[[LogHead], Figures]) -> None:
    if urlsplit(storage.root).scheme not in _LOGGED:
        return
    subject = f"{address.name}: a commit that records removed files"
    for _ in range(MAX_ATTEMPTS):
        newest, transaction = head(storage, table=address.name), uuid.uuid4()
        text = line("commitInfo", _commit_info(newest, figures_of(newest), run, transaction))
        name = commit_name(newest.version + 1)
        if _created(storage, name, f"{text}\n".encode(), staged_name(run, transaction), str(transaction)):
            return
    raise EvidenceError(subject, f"a free version within {MAX_ATTEMPTS} attempts", "another writer's at each")


def _created(storage: Storage, name: str, data: bytes, staged: str, transaction: str) -> bool:
    """Create the version; whether it is ours. It may be ours after a lost answer, and even after "already exists"."""
    try:
        won = storage.put_if_absent(name, data, temporary=f"{staged}.tmp")
    except OSError as failure:
        if storage.exists(name) and _is_of(storage, name, transaction):
            return True
        raise UnknownOutcome(name, "an answer", str(failure)) from failure
    return won or _is_of(storage, name, transaction)


def _is_of(storage: Storage, name: str, transaction: str) -> bool:
    infos = [body for kind, body in parse_lines(storage.read(name), subject=name) if kind == "commitInfo"]
    return any(info.get("txnId") == transaction for info in infos)


def _commit_info(newest: LogHead, figures: Figures, run: Run, transaction: uuid.UUID) -> dict[str, object]:
    """Keys in the order of actions.scala's CommitInfo; metrics are strings there too."""
    operation, parameters, metrics = figures
    before = newest.commit_info.get("timestamp")
    info: dict[str, object] = {}
    if newest.has_commit_times:
        last = long_value(newest.commit_info, "inCommitTimestamp", subject=f"commit of version {newest.version}")
        info["inCommitTimestamp"] = max(run.now_ms, last + 1)
    return info | {
        "timestamp": max(run.now_ms, before if isinstance(before, int) else 0),
        "operation": operation,
        "operationParameters": parameters,
        "readVersion": newest.version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": True,
        "operationMetrics": {name: str(number) for name, number in metrics.items()},
        "engineInfo": f"Nightkeep/{__version__}",
        "userMetadata": committer(run),
        "txnId": str(transaction),
    }
