"""Table properties -> how long removed files, the log and transactions are kept, in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.model.sweep_rules import DAY_MS

DELETED_FILES: Final = "delta.deletedFileRetentionDuration"
LOG_FILES: Final = "delta.logRetentionDuration"
TRANSACTIONS: Final = "delta.setTransactionRetentionDuration"
SKEW_MS: Final = DAY_MS
"""How far a writer's clock may be ahead of its store's. Removals of commits older than that are no longer protected, or
a checkpoint has them.
"""


def tombstone_retention_ms(metadata: Raw) -> int:
    """How long removed files are kept (DeltaConfig.scala, TOMBSTONE_RETENTION). The default is a week.

    Raises CorruptMetadata unless it is an interval in weeks to microseconds. Months and years have no fixed length.
    """
    text = property_text(metadata, DELETED_FILES)
    return 7 * DAY_MS if text is None else _milliseconds(DELETED_FILES, text)


def log_retention_ms(metadata: Raw) -> int:
    """How long the log is kept (DeltaConfig.scala, LOG_RETENTION). The default is 30 days. Raises as above."""
    text = property_text(metadata, LOG_FILES)
    return 30 * DAY_MS if text is None else _milliseconds(LOG_FILES, text)


def transaction_retention_ms(metadata: Raw) -> int | None:
    """How long transactions are kept (TRANSACTION_ID_RETENTION_DURATION). None: for ever. Raises as above."""
    text = property_text(metadata, TRANSACTIONS)
    return None if text is None else _milliseconds(TRANSACTIONS, text)


def property_text(metadata: Raw, name: str) -> str | None:
    """A table property; None if it is not set."""
    properties = metadata.get("configuration")
    value = properties.get(name) if isinstance(properties, Mapping) else None
    return None if value is None else str(value)


def threshold_ms(metadata: Raw, now_ms: int, older_than_ms: int) -> int:
    """Files removed since this time, in epoch milliseconds, are kept. The longer of both ages counts."""
    return now_ms - max(tombstone_retention_ms(metadata), older_than_ms)


def _milliseconds(name: str, text: str) -> int:
    parts = text.strip().lower().removeprefix("interval ").strip()
    if not _INTERVAL.fullmatch(parts):
        raise CorruptMetadata(name, "an interval such as 'interval 7 days'", repr(text))
    total = sum(Decimal(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(parts))
    if total < 0:
        raise CorruptMetadata(name, "an interval that is not negative", repr(text))
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
