"""A request and the table's properties -> the sizes at which files are small or worn."""

from __future__ import annotations

import re
from typing import Final

from nightkeep.clustering.sizing import Sizes
from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.tuning import SMALL_SHARE, TARGET_BYTES
from nightkeep.model import Request

TARGET_PROPERTY: Final = "delta.targetFileSize"
_SIZE: Final = re.compile(r"\s*(\d+)\s*(?:([kmgtp]?)(?:i?b)?)\s*", re.IGNORECASE)
_UNITS: Final = {letter: 1 << 10 * power for power, letter in enumerate(("", "k", "m", "g", "t", "p"))}


def sizes_of(snapshot: DeltaSnapshot, request: Request) -> Sizes:
    """The sizes for a request. Raises RefusedTable if the table's properties hold a target that is not a size."""
    target = request.target_bytes or _property(snapshot) or TARGET_BYTES
    return Sizes.of(request, target, small_share=SMALL_SHARE, columns=len(snapshot.schema.data_fields))


def _property(snapshot: DeltaSnapshot) -> int | None:
    text = snapshot.schema.configuration.get(TARGET_PROPERTY)
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if size <= 0:
        feature = f"{TARGET_PROPERTY} is {text!r}, which is no size"
        raise RefusedTable(snapshot.table.name, feature, "set it to one such as 256mb, or give a target size")
    return size
