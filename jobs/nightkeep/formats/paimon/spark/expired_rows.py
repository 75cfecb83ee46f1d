"""A time column and a clock -> whether its row has expired, in Spark SQL. Null for a row without a time."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from nightkeep.formats.paimon.metadata.record_expiry import LEAST_MILLIS, RecordAge
from nightkeep.formats.paimon.metadata.types import TypeRoot

_SECOND = 1000


def is_expired(time: Column, age: RecordAge, clock_ms: int) -> Column:
    """`time` in whole seconds, as Java makes it of each type, and older than the table allows at the clock."""
    seconds = time.cast("long")
    if age.field.type.root is TypeRoot.BIGINT:
        seconds = F.when(seconds < LEAST_MILLIS, seconds).otherwise(_divided(seconds))
    elif age.field.type.root is not TypeRoot.INT:
        # Sessions are in UTC, so that a local time and an instant count alike.
        seconds = _divided(F.unix_millis(time.cast("timestamp")))
    return F.lit(clock_ms // _SECOND) - F.lit(age.seconds) > seconds


def _divided(millis: Column) -> Column:
    return F.call_function("div", millis, F.lit(_SECOND))
