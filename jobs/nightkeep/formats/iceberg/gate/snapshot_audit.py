"""Parent and candidate -> faults of what a snapshot states of itself: when, by whom, of which kind, what it changed.

Time travel and expiry go by its time, streaming readers and the conflict checks of other writers by its operation, our
own retries by its run. Every count is computed again from the files of both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nightkeep.formats.iceberg.gate.live_files import live_files
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY, RUN_PROPERTY
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import head
from nightkeep.model import Operation
from nightkeep.model.run_names import COMMIT_USER
from nightkeep.storage import Storage
from nightkeep.storage.times import TICK_MS

_OPERATIONS: Final = {str(Operation.PERSIST_DELETES): "delete", str(Operation.OPTIMIZE): "replace"}
"""Java's compaction looks for new deletes in `delete` and `overwrite` snapshots; streaming readers pass over `replace`,
and stop at the others."""
_CHANGES: Final = {
    **{f"added-{end}": ("added", end) for end in ("data-files", "records")},
    **{f"deleted-{end}": ("removed", end) for end in ("data-files", "records")},
    **{
        f"{side}-{end}": (side, end)
        for side in ("added", "removed")
        for end in (
            "files-size",
            "delete-files",
            "position-delete-files",
            "equality-delete-files",
            "dvs",
            "position-deletes",
            "equality-deletes",
        )
    },
}
"""Keys of the summary, each with the files that it counts and what it counts of them."""


def counts(files: Iterable[ContentFile]) -> Mapping[str, int]:
    """Files, rows and bytes of files by the ends of summary keys."""
    found: Counter[str] = Counter()
    for file in files:
        # For a vector Java counts its own bytes, not those of the Puffin file.
        found["files-size"] += file.content_bytes or 0 if file.is_vector else file.bytes
        if file.content is FileContent.DATA:
            found.update({"data-files": 1, "records": file.rows})
        else:
            kind = "equality" if file.content is FileContent.EQUALITY_DELETES else "position"
            own = "dvs" if file.is_vector else f"{kind}-delete-files"
            found.update({"delete-files": 1, own: 1, f"{kind}-deletes": file.rows})
    return found


def snapshot_faults(storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot) -> tuple[str, ...]:
    """Faults of the staged snapshot's own fields and of its summary. Totals are proven with the files."""
    before, after = live_files(parent), live_files(candidate)
    added = [after[key] for key in after.keys() - before.keys()]
    removed = [before[key] for key in before.keys() - after.keys()]
    return (
        *_schema_faults(candidate),
        *_time_faults(storage, parent, candidate),
        *_kind_faults(candidate, added),
        *_change_faults(candidate.summary, added, removed),
    )


def _schema_faults(candidate: IcebergSnapshot) -> Iterator[str]:
    stated, expected = candidate.raw.get("schema-id"), candidate.schema.current.schema_id
    if stated != expected:
        yield f"schema-id {stated}, expected {expected}, by which time travel shows its rows"


def _time_faults(storage: Storage, parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults for a time to come: until then no other writer could commit (TableMetadata.java, ONE_MINUTE)."""
    if not isinstance(candidate.raw.get("timestamp-ms"), int):
        yield "no timestamp-ms"
    listed = storage.stat(name_in(storage, str(candidate.raw.get("manifest-list"))))
    updated_ms = head(parent.metadata, subject=parent.metadata_location).updated_ms
    written_ms = 0 if listed is None else listed.modified_ms + TICK_MS
    if candidate.timestamp_ms > max(parent.timestamp_ms, updated_ms, written_ms):
        yield f"made at {candidate.timestamp_ms}, after its manifest list was written, at {written_ms - TICK_MS}"


def _kind_faults(candidate: IcebergSnapshot, added: Iterable[ContentFile]) -> Iterator[str]:
    stated, run = (candidate.summary.get(name, "") for name in (OPERATION_PROPERTY, RUN_PROPERTY))
    expected = _OPERATIONS.get(stated)
    if candidate.operation != expected:
        yield f"operation {candidate.operation} of {stated or 'no operation of ours'}, expected {expected}"
    of_data = {file.content is FileContent.DATA for file in added}
    if of_data - {candidate.operation == "replace"}:
        new = "files of data" if True in of_data else "deletes"
        yield f"operation {candidate.operation} with new {new}, by which readers and writers would pass over them"
    if not run.startswith(COMMIT_USER) or run == COMMIT_USER:
        yield f"{RUN_PROPERTY} {run}, expected one that no other writer has"


def _change_faults(
    summary: Mapping[str, str], added: Iterable[ContentFile], removed: Iterable[ContentFile]
) -> Iterator[str]:
    sides = {"added": counts(added), "removed": counts(removed)}
    expected = {key: sides[side].get(end, 0) for key, (side, end) in _CHANGES.items()}
    places = {identity(file.spec_id, file.partition) for file in (*added, *removed)}
    expected["changed-partition-count"] = len(places)
    for key, number in expected.items():
        if summary.get(key, "0") != str(number):
            yield f"summary: {key} {summary.get(key, 'missing')}, expected {number}"
