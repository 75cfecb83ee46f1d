"""Schema -> RefusedTable if options that the table stores make Paimon's batch read show other rows than its newest.

An engine sets most of them for one query. Stored, they hold for every query that does not set them itself:
A/CoreOptions.java, C/table/FallbackReadFileStoreTable.java. Maintenance reads snapshots by number and is not concerned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.schema import PaimonSchema

BRANCHES: Final = ("scan.fallback-branch", "scan.primary-branch")
"""Partitions that one of two branches lacks are read of the other. Without a name, they have no effect."""
PLACES: Final = (
    "incremental-between",
    "incremental-between-timestamp",
    "incremental-to-auto-tag",
    "scan.bucket",
    "scan.creation-time-millis",
    "scan.file-creation-time-millis",
    "scan.snapshot-id",
    "scan.tag-name",
    "scan.timestamp",
    "scan.timestamp-millis",
    "log.scan.timestamp-millis",
    "scan.version",
    "scan.watermark",
)
"""They name a version, a difference, or some of the files."""
_WHOLE: Final = frozenset({"default", "full", "latest", "latest-full"})
HARMLESS: Final = {
    "scan.mode": _WHOLE,
    "log.scan": _WHOLE,
    "batch-scan-mode": frozenset({"none"}),
    "stream-scan-mode": frozenset({"none", "file-monitor"}),
    "key-value.sequence_number.enabled": frozenset({"false"}),
}
"""Values with which a batch read shows the newest rows as they are. With others it shows less, more, or fails."""


def refuse_scan_options(table: str, schema: PaimonSchema, advice: str) -> None:
    """Raises RefusedTable that names the first such option."""
    for key in _changing(schema):
        shown = f"option {key} = {schema.options[key]} changes the rows that a batch read shows, which is not handled"
        raise RefusedTable(table, shown, advice)


def _changing(schema: PaimonSchema) -> Iterator[str]:
    options = schema.options
    yield from (key for key in BRANCHES if options.get(key, "").strip())
    yield from (key for key in PLACES if key in options)
    yield from (key for key, values in HARMLESS.items() if key in options and options[key].lower() not in values)
