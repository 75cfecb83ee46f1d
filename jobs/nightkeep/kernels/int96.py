"""Parquet's INT96 times -> nanoseconds or microseconds. Never a wrong value.

A value is the nanoseconds of the day, then the Julian day. Before 1970 some writers use negative nanoseconds (Paimon
for TIMESTAMP(7) and finer, Flink: timestampToInt96 of ParquetRowDataWriter). Arrow reads them as unsigned and overflows
silently: it reads 1600 as 2184, and 1969 and 2554 as the same time. So the footer given to Arrow declares such columns
as twelve bytes wide (encodings.open_parquet), and Arrow returns the bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.model.arrow_types import Array, ChunkedArray

WIDTH = 12
_LAYOUT = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2_440_588
_MICROS_PER_DAY = 86_400_000_000
_MAX_MICROS = (2**63 - 1) // 1000 - 1


def times(column: ChunkedArray) -> ChunkedArray | None:
    """Twelve-byte values as timestamps in nanoseconds; None if any is outside the years 1678 to 2261."""
    chunks = [_times(chunk) for chunk in column.chunks]
    parts = [chunk for chunk in chunks if chunk is not None]
    return pa.chunked_array(parts, pa.timestamp("ns")) if len(parts) == len(chunks) else None


def micros(chunk: Array) -> Array:
    """Twelve-byte values as timestamps in microseconds, of any year; finer digits are cut as Spark's
    DateTimeUtils.fromJulianDay does, towards zero within the day."""
    nulls, nanos, days = _parts(chunk)
    # Without negative values integer division rounds correctly: the usual case, in a fifth of the time.
    cut = nanos // 1000 if not len(nanos) or nanos.min() >= 0 else np.trunc(nanos / 1000).astype(np.int64)
    return pa.array(days * _MICROS_PER_DAY + cut, pa.timestamp("us"), mask=nulls)


def _parts(chunk: Array) -> tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Flags of nulls (None if there are none), nanoseconds of the day, days since 1970."""
    raw = np.frombuffer(memoryview(chunk.buffers()[1] or b""), _LAYOUT, len(chunk), chunk.offset * WIDTH)
    nanos, days = raw["nanos"], raw["day"].astype(np.int64) - _EPOCH_DAY
    if not chunk.null_count:
        return None, nanos, days
    nulls = np.asarray(chunk.is_null())
    # The bytes of a null are undefined: zero here, and masked at the end.
    return nulls, np.where(nulls, 0, nanos), np.where(nulls, 0, days)


def _times(chunk: Array) -> Array | None:
    nulls, nanos, days = _parts(chunk)
    micros = days * _MICROS_PER_DAY + nanos // 1000
    if len(micros) and int(np.abs(micros).max()) > _MAX_MICROS:
        return None
    return pa.array(micros * 1000 + nanos % 1000, pa.timestamp("ns"), mask=nulls)
