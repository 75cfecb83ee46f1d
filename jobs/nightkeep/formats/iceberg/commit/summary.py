"""Files that a commit adds and removes -> the summary of its snapshot, with the keys of Java's SnapshotSummary.

Spec, "Optional Snapshot Summary Fields". All values are strings, and changes that are zero are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY, RUN_PROPERTY
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.model import Intent, Operation
from nightkeep.model.version import __version__

OPERATIONS: Final[Mapping[Operation, str]] = {
    # Not `replace`: Java's compaction checks only `delete` and `overwrite` snapshots for new deletes
    # (MergingSnapshotProducer.VALIDATE_ADDED_DELETE_FILES_OPERATIONS). It would bring deleted rows back.
    Operation.PERSIST_DELETES: "delete",
    Operation.OPTIMIZE: "replace",
}
_TOTALS: Final = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""Each total -> the keys of the change that raise it and lower it."""
_REMOVED: Final = {"data-files": "deleted-data-files", "records": "deleted-records"}
"""Java's keys use `removed` for deletes, but `deleted` for data files and records."""


def counts(files: Iterable[ContentFile | NewFile]) -> Mapping[str, int]:
    """Files, rows and bytes by the suffix of summary keys: for added, removed or live files."""
    counted: Counter[str] = Counter()
    for file in map(_measured, files):
        counted["files-size"] += file.bytes
        if file.content is FileContent.DATA:
            counted.update({"data-files": 1, "records": file.rows})
            continue
        kind = "equality" if file.content is FileContent.EQUALITY_DELETES else "position"
        own = "dvs" if file.is_vector else f"{kind}-delete-files"
        counted.update({"delete-files": 1, own: 1, f"{kind}-deletes": file.rows})
    return counted


@dataclass(frozen=True, slots=True)
class _Measured:
    """What Java counts of a file. A vector's `bytes` are its own, as vectors share a Puffin file (ScanTaskUtil)."""

    content: FileContent
    is_vector: bool
    rows: int
    bytes: int


def _measured(file: ContentFile | NewFile) -> _Measured:
    if isinstance(file, ContentFile):
        size = file.content_bytes or 0 if file.is_vector else file.bytes
        return _Measured(file.content, file.is_vector, file.rows, size)
    is_vector = file.raw.get("content_size_in_bytes") is not None
    size = file.number("content_size_in_bytes" if is_vector else "file_size_in_bytes")
    return _Measured(file.content, is_vector, file.rows, size)


def change_summary(added: Iterable[NewFile], removed: Iterable[ContentFile]) -> Mapping[str, str]:
    """The summary keys for added and removed files, rows and bytes, and the number of changed partitions."""
    added, removed = tuple(added), tuple(removed)
    places = [(file.spec_id, file.partition) for file in added]
    places += [(file.spec_id, file.partition) for file in removed]
    summary = {f"added-{end}": number for end, number in counts(added).items()}
    summary |= {_REMOVED.get(end, f"removed-{end}"): number for end, number in counts(removed).items()}
    summary["changed-partition-count"] = len({identity(*place) for place in places})
    return {key: str(number) for key, number in summary.items() if number or key == "changed-partition-count"}


def totals(live: Iterable[ContentFile | NewFile]) -> Mapping[str, str]:
    """The totals of a table that holds these files."""
    counted = counts(live)
    return {key: str(counted.get(key.removeprefix("total-"), 0)) for key in _TOTALS}


def new_totals(
    before: Mapping[str, str], change: Mapping[str, str], live: Iterable[ContentFile | NewFile]
) -> Mapping[str, str]:
    """The parent's totals plus the change, as every engine computes them.

    A total that the parent lacks, or that would become negative, is counted from `live`.
    """
    counted = totals(live)
    summary: dict[str, str] = {}
    for key, (more, less) in _TOTALS.items():
        stated = before.get(key, "")
        number = int(stated) + int(change.get(more, 0)) - int(change.get(less, 0)) if stated.isdecimal() else -1
        summary[key] = counted[key] if number < 0 else str(number)
    return summary


def own_keys(intent: Intent, user: str) -> Mapping[str, str]:
    """Our own summary keys: the commit user, and the operation with its settings."""
    keys = {"engine-name": "nightkeep", "engine-version": __version__, RUN_PROPERTY: user}
    if intent.operation in OPERATIONS:
        keys[OPERATION_PROPERTY] = str(intent.operation)
    if intent.where is not None:
        keys["nightkeep.where"] = intent.where
    if intent.clustering is not None:
        keys["nightkeep.clustering"] = str(intent.clustering)
    return keys
