"""A request and the table's options -> the sizes at which files are small or worn.

As AppendCompactCoordinator.java picks files of buckets that it does not know (bucket = -1).
"""

from __future__ import annotations

import re
from typing import Final

from nightkeep.clustering.sizing import Sizes
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bytes, option_int
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.model import Request

TARGET_BYTES: Final = 256 << 20
"""Default target-file-size of a table without keys (CoreOptions.targetFileSize)."""
SMALL_SHARE: Final = 0.7
"""Default of compaction.small-file-ratio."""
FEWEST: Final = 5
"""Default of compaction.min.file-num."""
MAX_DELETED_RATIO: Final = 0.2
"""Default of compaction.delete-ratio-threshold."""


def sizes_of(snapshot: PaimonSnapshot, request: Request) -> Sizes:
    """The sizes for a request. Raises CorruptMetadata for an option that is no size, number or share."""
    schema = snapshot.schema
    target = request.target_bytes or option_bytes(schema, "target-file-size", TARGET_BYTES) or TARGET_BYTES
    return Sizes.of(
        request,
        target,
        small_share=_share(schema, "compaction.small-file-ratio", SMALL_SHARE),
        fewest=option_int(schema, "compaction.min.file-num", FEWEST),
        max_deleted_ratio=_share(schema, "compaction.delete-ratio-threshold", MAX_DELETED_RATIO),
        columns=len(schema.fields),
    )


def _share(schema: PaimonSchema, key: str, default: float) -> float:
    text = schema.options.get(key, str(default)).strip()
    if not re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}", text):
        raise CorruptMetadata(f"option {key}", "a share", text)
    return float(text)
