"""JSON of a snapshot -> its sequence number and the row ids after it."""

from __future__ import annotations

from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head, integer


def sequence_number(snapshot: Raw, *, subject: str) -> int:
    """0 for a snapshot of format version 1, which has none. Raises CorruptMetadata."""
    has_number = snapshot.get("sequence-number") is not None
    return integer(snapshot, "sequence-number", subject=subject) if has_number else 0


def next_row_id(metadata: Raw, snapshot: Raw, *, subject: str) -> int | None:
    """The table's next row id; for a staged snapshot the one after its commit. Raises CorruptMetadata."""
    current = head(metadata, subject=subject)
    if current.next_row_id is None or not snapshot.get("snapshot-id") or snapshot["snapshot-id"] in current.snapshots:
        return current.next_row_id
    if "first-row-id" not in snapshot:
        # Staged before the table got row lineage. That is a conflict, which publishing detects.
        return current.next_row_id
    first = integer(snapshot, "first-row-id", subject=subject)
    return first + integer(snapshot, "added-rows", subject=subject)
