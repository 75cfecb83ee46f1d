"""Snapshot JSON -> what our own commit states in its properties, which only Nightkeep reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

EXPIRY_CLOCK: Final = "nightkeep.expiry-clock"
"""The property with the time, in milliseconds, by which the commit dropped expired rows."""
MERGED_PARENT: Final = "nightkeep.parent"
"""The property with the digest of the snapshot that the commit was staged on, where it has merged manifests."""


def expiry_clock(raw: Mapping[str, object]) -> int | None:
    """The time, in milliseconds, by which the commit dropped expired rows; None of any other commit."""
    text = _property(raw, EXPIRY_CLOCK) or ""
    return int(text) if raw["commitKind"] == "COMPACT" and re.fullmatch("[0-9]{1,18}", text) else None


def merged_parent(raw: Mapping[str, object]) -> str | None:
    """The digest of the snapshot that the commit was staged on; None if its base list has that."""
    return _property(raw, MERGED_PARENT)


def _property(raw: Mapping[str, object], key: str) -> str | None:
    properties = raw.get("properties")
    value = properties.get(key) if isinstance(properties, Mapping) else None
    return value if isinstance(value, str) else None
