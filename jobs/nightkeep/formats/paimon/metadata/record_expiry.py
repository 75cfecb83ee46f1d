"""A table's options -> the age at which rows with a primary key expire, and what we do not handle of it.

Readers show expired rows until a compaction drops them. Source: C/io/RecordLevelExpire.java of Paimon 2.0.0, which
applies it in compactions of tables with a primary key only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nightkeep.formats.paimon.metadata.changelog import PRODUCER, changelog_rules
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, keeps_first_row, option_millis
from nightkeep.formats.paimon.metadata.types import TypeRoot

EXPIRE_TIME: Final = "record-level.expire-time"
TIME_FIELD: Final = "record-level.time-field"
LEAST_MILLIS: Final = 1_000_000_000_000
"""A BIGINT from here on is in milliseconds, below in seconds."""
TIMES: Final = (TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


@dataclass(frozen=True, slots=True)
class RecordAge:
    """Rows expire when their time, in whole seconds since 1970, is more than `seconds` before the clock.

    A row without a time never expires. A timestamp before 1970 is cut towards 1970, as Java divides.
    """

    field: PaimonField
    seconds: int

    def limit(self, clock_ms: int) -> int:
        """Rows with a time below this one, in seconds since 1970, expire."""
        return clock_ms // 1000 - self.seconds


def record_age(schema: PaimonSchema) -> RecordAge | None:
    """None where no row expires. Call it for schemas that `record_expiry_features` lets through."""
    millis = option_millis(schema, EXPIRE_TIME) if schema.primary_keys else None
    return None if millis is None else RecordAge(schema.field(schema.options[TIME_FIELD]), millis // 1000)


def record_expiry_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the expiry of rows that we do not handle, each with an advice."""
    if EXPIRE_TIME not in schema.options or not schema.primary_keys:
        return
    name = schema.options.get(TIME_FIELD)
    field = next((field for field in schema.fields if field.name == name), None)
    if field is None:
        found = f"{TIME_FIELD} = {name}" if name else f"no {TIME_FIELD}"
        yield f"option {EXPIRE_TIME} with {found} is not handled", "name a column of the table, as Paimon asks for"
    elif field.type.root not in TIMES:
        feature = f"option {TIME_FIELD} = {name} of type {field.type} is not handled"
        yield feature, "INT and BIGINT, in seconds, BIGINT in milliseconds, and timestamps are"
    if keeps_first_row(schema):
        advice = "expired rows could not be marked as deleted, as such a table has no deletion vectors"
        yield f"option {EXPIRE_TIME} with merge-engine = first-row is not handled", advice
    if changelog_rules(schema) is not None:
        advice = "rows that expire are not reported to streaming readers"
        producer = schema.options[PRODUCER]
        yield f"option {EXPIRE_TIME} with {PRODUCER} = {producer} is not handled", advice
