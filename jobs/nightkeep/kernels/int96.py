"""Parquet's INT96 times -> nanoseconds or microseconds. Never a wrong value.

A value is the nanoseconds of the day, then the Julian day. Before 1970 some writers use negative nanoseconds (Paimon
for TIMESTAMP(7) and finer, Flink: timestampToInt96 of ParquetRowDataWriter). Arrow reads them as unsigned and overflows
silently: it reads 1600 as 2184, and 1969 and 2554 as the same time. So the footer given to Arrow declares such columns
as twelve bytes wide, and Arrow returns the bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.kernels.parquet_footer import I32, Fields, footer_bytes, read_footer, structs
from nightkeep.model.arrow_types import Array, ChunkedArray

WIDTH = 12
_LAYOUT = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2_440_588
_MICROS_PER_DAY = 86_400_000_000
_MAX_MICROS = (2**63 - 1) // 1000 - 1

# parquet.thrift. Type: INT96 and FIXED_LEN_BYTE_ARRAY. FileMetaData: schema, row_groups. RowGroup: columns.
# ColumnChunk: meta_data. SchemaElement and ColumnMetaData: type; SchemaElement: type_length.
_INT96, _FIXED = (I32, 3), (I32, 7)
_SCHEMA, _ROW_GROUPS, _COLUMNS, _METADATA, _TYPE, _LENGTH = 2, 4, 1, 3, 1, 2


def open_parquet(source: pa.NativeFile) -> tuple[pq.ParquetFile, frozenset[str]]:
    """The file, and its columns that are read as twelve bytes per value. Page checksums are verified.

    The source stays open; it is closed with the last reference to it.

    Java writes checksums but does not verify them: of 300 flipped bits in a file of Java, 256 read as other rows
    without verification, none with it. 5 M rows of three columns take 0.21 s instead of 0.20 s.
    """
    parquet = pq.ParquetFile(source, page_checksum_verification=True)
    columns = [parquet.schema.column(number) for number in range(len(parquet.schema))]
    names = frozenset(column.path for column in columns if column.physical_type == "INT96")
    if not names:
        return parquet, names
    footer = read_footer(source)
    _retype(footer)
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer_bytes(footer)))
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True), names


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


def _retype(footer: Fields) -> None:
    for element in structs(footer, _SCHEMA):
        if element.get(_TYPE) == _INT96:
            element |= {_TYPE: _FIXED, _LENGTH: (I32, WIDTH)}
    chunks = [chunk for group in structs(footer, _ROW_GROUPS) for chunk in structs(group, _COLUMNS)]
    for chunk in chunks:
        _, column = chunk[_METADATA]
        if column[_TYPE] == _INT96:
            column[_TYPE] = _FIXED
