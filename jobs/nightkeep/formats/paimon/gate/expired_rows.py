"""Rows that readers saw and a clock -> the rows that they should still see. By Polars; the rewrite has its own code."""

from __future__ import annotations

from typing import cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.own_commits import expiry_clock
from nightkeep.formats.paimon.metadata.record_expiry import LEAST_MILLIS, RecordAge, record_age
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import TypeRoot


def unexpired(unit: Bucket, rows: pa.RecordBatch, clock_ms: int) -> pa.RecordBatch:
    """The rows that have not expired at the clock: those without a time among them."""
    if record_age(unit.schemas.current) is None:
        return rows
    return rows.filter(pc.invert(expired(unit, rows, clock_ms)))


def expired(unit: Bucket, rows: pa.RecordBatch, clock_ms: int) -> pa.BooleanArray:
    """Which of the rows have expired at the clock. Call it for tables whose rows expire."""
    age = record_age(unit.schemas.current)
    assert age is not None
    name = age.field.name
    times = cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches([rows]).select([name])))
    gone = times.select(gone=_is_below(pl.col(name), age, age.limit(clock_ms)).fill_null(value=False))["gone"]
    return cast(pa.BooleanArray, gone.to_arrow())


def clock(version: PaimonSnapshot) -> int | None:
    """The time that the version's commit states as its clock's."""
    return expiry_clock(version.raw)


def _is_below(time: pl.Expr, age: RecordAge, limit: int) -> pl.Expr:
    """Whether a time is before `limit`, in seconds, without dividing what is stored."""
    if age.field.type.root is TypeRoot.INT:
        return time.cast(pl.Int64) < limit
    if age.field.type.root is TypeRoot.BIGINT:
        return pl.when(time < LEAST_MILLIS).then(time < limit).otherwise(time < limit * 1000)
    # The last second before 1970 counts as the first one after it.
    bound = limit * 1000 if limit > 0 else (limit - 1) * 1000 + 1
    return time.dt.epoch("ms") < bound
