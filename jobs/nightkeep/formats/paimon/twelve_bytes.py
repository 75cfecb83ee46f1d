"""Parquet's INT96 times -> nanoseconds, exactly or not at all.

Paimon writes TIMESTAMP(7) and finer as nanoseconds of the day, then the Julian day (timestampToInt96 of
ParquetRowDataWriter). Before 1970 its nanoseconds are negative. Arrow takes them for unsigned and wraps around
without a word, so that it reads 1600 as 2184 and tells 1969 from 2554 in no unit. Here Arrow is told that such
columns are twelve bytes wide, and hands them out as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.formats.paimon.parquet_footer import I32, Fields, footer_bytes, read_footer, structs
from nightkeep.kernels.arrow_buffers import ChunkedArray

WIDTH = 12
_LAYOUT = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2_440_588
_MICROS_PER_DAY = 86_400_000_000
_MAX_MICROS = (2**63 - 1) // 1000 - 1

# parquet.thrift. Type: INT96 and FIXED_LEN_BYTE_ARRAY. FileMetaData: schema, row_groups. RowGroup: columns.
# ColumnChunk: meta_data. SchemaElement and ColumnMetaData: type; SchemaElement: type_length.
_INT96, _FIXED = (I32, 3), (I32, 7)
_SCHEMA, _ROW_GROUPS, _COLUMNS, _METADATA, _TYPE, _LENGTH = 2, 4, 1, 3, 1, 2


def open_parquet(path: str) -> tuple[pq.ParquetFile, frozenset[str]]:
    """The file, and the columns in it that read as twelve bytes a value. Pages are held to their checksums.

    Java writes them, and does not look: of 300 flipped bits in a file of its own, 256 read as other rows without,
    none with them; 5 M rows of three columns take 0.21 s instead of 0.20 s.
    """
    parquet = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
    columns = [parquet.schema.column(number) for number in range(len(parquet.schema))]
    names = frozenset(column.path for column in columns if column.physical_type == "INT96")
    if not names:
        return parquet, names
    footer = read_footer(path)
    _retype(footer)
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer_bytes(footer)))
    return pq.ParquetFile(path, memory_map=True, metadata=metadata, page_checksum_verification=True), names


def times(column: ChunkedArray) -> ChunkedArray | None:
    """Twelve-byte values as timestamps in nanoseconds; None where one is outside their years, 1678 to 2261."""
    chunks = [_times(chunk) for chunk in column.chunks]
    found = [chunk for chunk in chunks if chunk is not None]
    return pa.chunked_array(found, pa.timestamp("ns")) if len(found) == len(chunks) else None


def _times(chunk: pa.Array[Any]) -> pa.Array[Any] | None:
    nulls = np.asarray(chunk.is_null())
    # What a null's bytes are is nobody's promise; they are masked at the end.
    raw = np.frombuffer(memoryview(chunk.buffers()[1] or b""), _LAYOUT, len(chunk), chunk.offset * WIDTH)
    nanos = np.where(nulls, 0, raw["nanos"])
    days = np.where(nulls, 0, raw["day"].astype(np.int64) - _EPOCH_DAY)
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
