"""Rows and a clock -> which of them have expired; a bucket -> the files that may hold such rows.

Java drops expired rows from a compaction's input, so that an older row of the same key may show up again. Here a row
expires when it is the one that readers see: a key has no row then, whatever older rows it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.metadata.record_expiry import LEAST_MILLIS, RecordAge, record_age
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags
from nightkeep.model import Request
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

_MILLISECOND_TICKS = {"ms": 1, "us": 10**3, "ns": 10**6}


def expiry_clock(snapshot: PaimonSnapshot, request: Request) -> int | None:
    """The clock of a plan: the time of the request, in milliseconds; None for a table whose rows do not expire."""
    return None if record_age(snapshot.schema) is None else request.now_ms


def are_expired(times: ChunkedArray, age: RecordAge, clock_ms: int) -> Flags:
    """Whether each row of these times, of the column's type, has expired. False for null."""
    there = np.asarray(times.is_valid())
    whole: ChunkedArray = times.cast(pa.int64())
    filled: ChunkedArray = pc.fill_null(whole, pa.scalar(0, whole.type))
    ticks = filled.to_numpy()
    flags: Flags = there & (_seconds(ticks, times.type, age) < age.limit(clock_ms))
    return flags


def may_expire(bucket: Bucket, clock_ms: int) -> frozenset[str]:
    """Names of the files that may hold expired rows, by their statistics. Java passes over files without them."""
    age = record_age(bucket.schemas.current)
    if age is None or not bucket.files:
        return frozenset()
    lows = file_bounds(bucket.schemas, bucket.files, [age.field])[age.field.name,].lows
    unknown = np.asarray(lows.is_null())
    old = unknown | are_expired(pa.chunked_array([lows]), age, clock_ms)
    return frozenset(file.name for file, is_old in zip(bucket.files, old, strict=True) if is_old)


def without_expired(rows: pa.Table, schema: PaimonSchema, clock_ms: int) -> pa.Table:
    """The rows that stay. `rows` have the table's own columns."""
    age = record_age(schema)
    if age is None:
        return rows
    expired = are_expired(rows.column(age.field.name), age, clock_ms)
    return rows.filter(pa.array(~expired)) if expired.any() else rows


def expired_positions(
    storage: Storage, bucket: Bucket, files: Sequence[PaimonDataFile], marked: Mapping[str, BitMap64], *, clock_ms: int
) -> Mapping[str, BitMap64]:
    """Positions of expired rows that are not `marked`, by file. Files without one are left out."""
    age, candidates = record_age(bucket.schemas.current), may_expire(bucket, clock_ms)
    found: dict[str, BitMap64] = {}
    for file in files:
        if age is None or file.name not in candidates:
            continue
        times = PaimonFileReader(storage, bucket, file).read([age.field.name]).column(0)
        old = np.flatnonzero(are_expired(times, age, clock_ms)).astype(np.uint64)
        fresh = BitMap64(old) - marked.get(file.name, BitMap64())
        if fresh:
            found[file.name] = fresh
    return found


def _seconds(ticks: Rows, kind: pa.DataType, age: RecordAge) -> Rows:
    if age.field.type.root is TypeRoot.INT:
        return ticks
    if age.field.type.root is TypeRoot.BIGINT:
        return np.where(ticks >= LEAST_MILLIS, ticks // 1000, ticks)
    # Java's timestamps are whole milliseconds and nanoseconds on top; its division of those is towards zero.
    per_milli = next(ticks_of for unit, ticks_of in _MILLISECOND_TICKS.items() if f"[{unit}" in str(kind))
    millis = ticks // per_milli
    seconds: Rows = np.sign(millis) * (np.abs(millis) // 1000)
    return seconds
