"""An edit -> the commitInfo that a table's history shows, in the words and the order of delta-spark.

DeltaOperations.scala (Optimize), DeltaOperationMetrics in the same file, and commits that delta-spark wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nightkeep import __version__
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Curve, Intent, Operation

OPERATIONS: Mapping[Operation, str] = {
    Operation.OPTIMIZE: "OPTIMIZE",
    # Not OPTIMIZE: that says rows moved, and delta-spark promises of it that no added file has a vector.
    Operation.PERSIST_DELETES: "PERSIST DELETES",
    Operation.DELETE: "DELETE",
}


def commit_info(parent: DeltaSnapshot, edit: DeltaEdit, *, now_ms: int) -> dict[str, object]:
    """All but who did it. Keys in the order of actions.scala's CommitInfo; metrics are strings there too.

    `readVersion` is the version that the commit was validated against, so that no change of others lies between.
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
        # Rows that others append while we delete stay, as if they had come after.
        "isolationLevel": "WriteSerializable" if edit.intent.operation is Operation.DELETE else "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": _metrics(edit),
    }
    if parent.schema.row_tracking is not None:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    return info | {"engineInfo": f"Nightkeep/{__version__}"}


def _parameters(intent: Intent) -> dict[str, object]:
    """JSON in strings, as delta-spark has it. Its Z-order is `zOrderBy`; its Hilbert curve goes by `clusterBy`."""
    predicate = {"predicate": json.dumps([] if intent.where is None else [intent.where], ensure_ascii=False)}
    if intent.operation is not Operation.OPTIMIZE:
        return dict(predicate)
    wanted = intent.clustering
    columns = {curve: list(wanted.columns) if wanted and wanted.curve is curve else [] for curve in Curve}
    zorder, hilbert = (
        json.dumps(columns[curve], separators=(",", ":"), ensure_ascii=False) for curve in (Curve.Z, Curve.HILBERT)
    )
    return {**predicate, "zOrderBy": zorder, "clusterBy": hilbert, "auto": False}


def _metrics(edit: DeltaEdit) -> dict[str, str]:
    if edit.intent.operation is Operation.DELETE:
        return _delete_metrics(edit)
    added, removed = [_size(add) for add in edit.added], [file.bytes for file in edit.removed]
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
    """DMLWithDeletionVectorsHelper.scala: files count where nothing is left of them, their bytes do not, and a vector
    that is replaced is added, removed and updated."""
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
    """Of the added files; nothing where none was added. OptimizeMetrics takes the element at count * k / 4."""
    if not sizes:
        return {}
    ordered, names = sorted(sizes), ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize")
    quartiles = {name: ordered[len(ordered) * quarter // 4] for quarter, name in enumerate(names)}
    return quartiles | {"maxFileSize": ordered[-1]}


def _size(add: Mapping[str, object]) -> int:
    size = add["size"]
    assert isinstance(size, int)
    return size
