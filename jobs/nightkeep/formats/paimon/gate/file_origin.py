"""Parent and candidate -> faults of what new files state of where their rows come from, and since when.

Java keeps appended files for longer than others when it expires snapshots, and reads them as new rows. Partitions
expire by the newest file (`partition.expiration-strategy = update-time`), and readers may leave out files made before
a time (`scan.file-creation-time-millis`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_order import APPENDED, COMPACTED
from nightkeep.model import UnitKey


def origin_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """New files hold rows of old files, unless the commit changes rows, and none is older than all files before it."""
    expected = APPENDED if candidate.changes_rows else COMPACTED
    for key in touched:
        before = parent.by_key[key].files if key in parent.by_key else ()
        known, oldest = {file.name for file in before}, min((file.created_ms for file in before), default=0)
        for file in candidate.by_key[key].files:
            source = file.record.get("_FILE_SOURCE")
            if file.name in known:
                continue
            if source != expected:
                yield f"{key}: {file.name} states source {source}, expected {expected}"
            if file.created_ms < oldest:
                yield f"{key}: {file.name} states creation at {file.created_ms}, before all that were there, {oldest}"
