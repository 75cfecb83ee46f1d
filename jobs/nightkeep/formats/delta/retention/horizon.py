"""Table properties -> how long removed files are kept, in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.model.sweep_rules import DAY_MS

DELETED_FILES: Final = "delta.deletedFileRetentionDuration"


def tombstone_retention_ms(metadata: Raw) -> int:
    """How long removed files are kept (DeltaConfig.scala, TOMBSTONE_RETENTION). The default is a week.

    Raises CorruptMetadata unless it is an interval in weeks to microseconds. Months and years have no fixed length.
    """
    properties = metadata.get("configuration")
    text = properties.get(DELETED_FILES) if isinstance(properties, Mapping) else None
    return 7 * DAY_MS if text is None else _milliseconds(str(text))


def threshold_ms(metadata: Raw, now_ms: int, older_than_ms: int) -> int:
    """Files removed since this time, in epoch milliseconds, are kept. The longer of both ages counts."""
    return now_ms - max(tombstone_retention_ms(metadata), older_than_ms)


def _milliseconds(text: str) -> int:
    parts = text.strip().lower().removeprefix("interval ").strip()
    if not _INTERVAL.fullmatch(parts):
        raise CorruptMetadata(DELETED_FILES, "an interval such as 'interval 7 days'", repr(text))
    total = sum(Decimal(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(parts))
    if total < 0:
        raise CorruptMetadata(DELETED_FILES, "an interval that is not negative", repr(text))
    return int(total) // 1000


_MICROSECONDS: Final[Mapping[str, int]] = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
_PART: Final = re.compile(rf"([+-]?[0-9]+(?:\.[0-9]+)?)\s+({'|'.join(_MICROSECONDS)})s?")
_INTERVAL: Final = re.compile(rf"{_PART.pattern}(?:\s+{_PART.pattern})*")
