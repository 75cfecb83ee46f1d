"""The JSON of a table -> who committed each snapshot, by the summary of each. Reads no file."""

from __future__ import annotations

from itertools import takewhile

from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY, RUN_PROPERTY
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import MetadataHead, ancestors, head, integer, summary_of
from nightkeep.formats.iceberg.reading.past import application_of, author_of, claim_of, kind_of
from nightkeep.protocol.version_writers import WrittenSince, WrittenVersion


def written_since(newest: IcebergSnapshot, *, since: int, most: int) -> WrittenSince:
    """As `protocol.version_writers.ReadsWriters`. If `since` has expired, all that is left counts as new."""
    subject = newest.metadata_location
    lineage = ancestors(newest.metadata, newest.version, subject=subject)
    fresh = [*takewhile(lambda number: number != since, lineage)]
    table = head(newest.metadata, subject=subject)
    found = tuple(_written(table, number, subject) for number in fresh[:most])
    return WrittenSince(found, len(fresh) - len(found))


def _written(table: MetadataHead, number: int, subject: str) -> WrittenVersion:
    raw = table.snapshots[number]
    summary = summary_of(raw, subject=f"{subject}: snapshot {number}")
    author, application = author_of(summary), application_of(summary)
    return WrittenVersion(
        version=number,
        kind=kind_of(summary),
        author=author,
        claim=claim_of(summary),
        ours=bool({OPERATION_PROPERTY, RUN_PROPERTY} & summary.keys()),
        application=None if application == author else application,
        time_ms=integer(raw, "timestamp-ms", subject=subject),
    )
