"""An edit -> the commitInfo that a table's history shows, with delta-spark's names and order.

DeltaOperations.scala (Optimize), DeltaOperationMetrics in the same file, and commits that delta-spark wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nightkeep.formats.delta.metadata.actions import long_value
from nightkeep.formats.delta.metadata.naming import ENGINE
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Curve, Intent, Operation
from nightkeep.model.version import __version__

OPERATIONS: Mapping[Operation, str] = {
    Operation.OPTIMIZE: "OPTIMIZE",
    # Not OPTIMIZE: that means moved rows, and delta-spark assumes that no file it added has a vector.
    Operation.PERSIST_DELETES: "PERSIST DELETES",
    Operation.DELETE: "DELETE",
}


def commit_info(parent: DeltaSnapshot, edit: DeltaEdit, *, now_ms: int) -> dict[str, object]:
    """The commitInfo without its author. Order of keys and metrics as strings follow actions.scala's CommitInfo.

    `readVersion` is the version that the commit was validated against, so no commit of others lies between.
    """
    before = parent.commit_info.get("timestamp")
    info: dict[str, object] = {}
    if parent.in_commit_timestamp is not None:
        info["inCommitTimestamp"] = max(now_ms, parent.in_commit_timestamp + 1)
    info |= {
        "timestamp": max(now_ms, before if isinstance(before, int) else 0),
        "operation": OPERATIONS[edit.intent.operation],
        "operationParameters": _parameters(edit.intent),
        "readVersion": parent.version,
        # Rows that others append during our delete stay, as if they were appended after it.
        "isolationLevel": "WriteSerializable" if edit.intent.operation is Operation.DELETE else "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": _metrics(edit),
    }
    if parent.schema.row_tracking is not None:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    return info | {"engineInfo": f"{ENGINE}/{__version__}"}


def _parameters(intent: Intent) -> dict[str, object]:
    """Operation parameters, as delta-spark's JSON in strings. Z-order is `zOrderBy`, a Hilbert curve `clusterBy`."""
    predicate = {"predicate": json.dumps([] if intent.where is None else [intent.where], ensure_ascii=False)}
    if intent.operation is not Operation.OPTIMIZE:
        return dict(predicate)
    clustering = intent.clustering
    columns = {curve: list(clustering.columns) if clustering and clustering.curve is curve else [] for curve in Curve}
    zorder, hilbert = (
        json.dumps(columns[curve], separators=(",", ":"), ensure_ascii=False) for curve in (Curve.Z, Curve.HILBERT)
    )
    return {**predicate, "zOrderBy": zorder, "clusterBy": hilbert, "auto": False}


def _metrics(edit: DeltaEdit) -> dict[str, str]:
    if edit.intent.operation is Operation.DELETE:
        return _delete_metrics(edit)
    added = [long_value(add, "size", subject=str(add["path"])) for add in edit.added]
    removed = [file.bytes for file in edit.removed]
    counts = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(added),
        "numDeletionVectorsRemoved": sum(file.vector is not None for file in edit.removed),
    }
    if edit.intent.operation is Operation.PERSIST_DELETES:
        counts["numDeletionVectorsAdded"] = sum(add.get("deletionVector") is not None for add in edit.added)
    return {key: str(value) for key, value in (counts | _quartiles(added)).items()}


def _delete_metrics(edit: DeltaEdit) -> dict[str, str]:
    """Metrics of a DELETE, as DMLWithDeletionVectorsHelper.scala counts them.

    A file without live rows counts as removed, but its bytes do not. A replaced vector counts as added, removed and
    updated.
    """
    before = {file.raw["path"]: file.vector is not None for file in edit.removed}
    kept = {add["path"] for add in edit.added}
    counts = {
        "numRemovedFiles": len(before.keys() - kept),
        "numRemovedBytes": 0,
        "numCopiedRows": 0,
        "numDeletionVectorsAdded": len(kept),
        "numDeletionVectorsRemoved": sum(before.values()),
        "numDeletionVectorsUpdated": sum(before[path] for path in kept),
        "numAddedFiles": 0,
        "numAddedChangeFiles": 0,
        "numDeletedRows": edit.rows_deleted,
        "numAddedBytes": 0,
    }
    return {key: str(value) for key, value in counts.items()}


def _quartiles(sizes: Sequence[int]) -> dict[str, int]:
    """Quartiles of the added files' sizes; empty if none was added. OptimizeMetrics takes element count * k / 4."""
    if not sizes:
        return {}
    ordered, names = sorted(sizes), ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize")
    quartiles = {name: ordered[len(ordered) * quarter // 4] for quarter, name in enumerate(names)}
    return quartiles | {"maxFileSize": ordered[-1]}
