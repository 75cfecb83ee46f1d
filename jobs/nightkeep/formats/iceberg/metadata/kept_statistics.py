"""Table metadata and a snapshot that keeps the rows of its parent -> the parent's statistics, for the snapshot too.

Spark takes statistics of columns from the entry of exactly the snapshot that it scans (SparkScan.estimateStatistics).
A compaction would leave its optimizer without them. Sketches of distinct values are of rows: equal rows, equal
sketches. Each blob still states the snapshot that it was computed from. Statistics of partitions count files, and are
not kept.
Iceberg table spec, "Table Statistics"; Puffin spec, "apache-datasketches-theta-v1".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer, objects, parent_id, summary_of

_OF_ROWS: Final = frozenset({"apache-datasketches-theta-v1"})
"""Types of blobs that depend on rows alone."""


def kept_statistics(raw: Raw, snapshot: Raw, *, subject: str) -> Sequence[Raw]:
    """Entries of `statistics` for `snapshot`: none where it may change rows, or where its parent has none.

    Entries name the parent's file. Blobs of types that may depend on more than rows are left out of them. Raises
    CorruptMetadata.
    """
    parent = parent_id(snapshot, subject=subject)
    if parent is None or OPERATION_PROPERTY not in summary_of(snapshot, subject=subject):
        return ()
    own = integer(snapshot, "snapshot-id", subject=subject)
    of_parent = (
        each
        for each in objects(raw, "statistics", subject=subject)
        if integer(each, "snapshot-id", subject=subject) == parent
    )
    entries = ({**each, "snapshot-id": own, "blob-metadata": _of_rows(each, subject)} for each in of_parent)
    return [entry for entry in entries if entry["blob-metadata"]]


def _of_rows(entry: Raw, subject: str) -> Sequence[Raw]:
    return [blob for blob in objects(entry, "blob-metadata", subject=subject) if blob.get("type") in _OF_ROWS]
