"""Request and table properties -> the limits for small, large and worn files."""

from __future__ import annotations

from typing import Final

from nightkeep.clustering.sizing import Sizes
from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Request

TARGET_PROPERTY: Final = "write.target-file-size-bytes"
TARGET_BYTES: Final = 512 << 20
"""The default target size in bytes (TableProperties.java)."""
SMALL_SHARE: Final = 0.75
LARGE_SHARE: Final = 1.8
"""Files between these shares of the target are left alone (SizeBasedFileRewritePlanner.java)."""
FEWEST: Final = 2
"""Java's planner waits for five small files (min-input-files), as it may run after every checkpoint. We run once a day:
the two or three small files of a partition whose day is over would otherwise stay for good."""


def sizes_of(snapshot: IcebergSnapshot, request: Request) -> Sizes:
    """The size limits. Raises RefusedTable if the target in the table's properties is no valid size."""
    target = request.target_bytes or _property(snapshot)
    columns = len(snapshot.schema.current.fields)
    return Sizes.of(request, target, small_share=SMALL_SHARE, large_share=LARGE_SHARE, fewest=FEWEST, columns=columns)


def _property(snapshot: IcebergSnapshot) -> int:
    text = snapshot.schema.properties.get(TARGET_PROPERTY)
    if text is None:
        return TARGET_BYTES
    if not text.strip().isdecimal() or not int(text):
        feature = f"{TARGET_PROPERTY} is {text!r}, which is no size"
        raise RefusedTable(snapshot.table.name, feature, "set it to a number of bytes, or give a target size")
    return int(text)
