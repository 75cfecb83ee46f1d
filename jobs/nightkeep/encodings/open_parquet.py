"""The bytes of a Parquet file -> the file as Arrow opens it, under a footer of ours where Arrow would refuse its own or
read wrong values by it."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.optional_keys import declare_lists
from nightkeep.encodings.parquet_footer import I32, Fields, footer_bytes, read_footer, structs

_OPTIONAL_KEYS: Final = "Map keys must be annotated as required"
"""What Arrow reports for a sound footer whose maps have optional keys (parquet/arrow/schema.cc)."""
_WIDTH: Final = 12

# parquet.thrift. Type: INT96 and FIXED_LEN_BYTE_ARRAY. FileMetaData: schema, row_groups. RowGroup: columns.
# ColumnChunk: meta_data. SchemaElement and ColumnMetaData: type; SchemaElement: type_length.
_INT96, _FIXED = (I32, 3), (I32, 7)
_SCHEMA, _ROW_GROUPS, _COLUMNS, _METADATA, _TYPE, _LENGTH = 2, 4, 1, 3, 1, 2


def open_parquet(source: pa.NativeFile, *, shows_entries: bool = False) -> tuple[pq.ParquetFile, frozenset[str]]:
    """The file, and its columns that are read as twelve bytes per value. Page checksums are verified.

    The source stays open; it is closed with the last reference to it. With `shows_entries`, maps with optional keys,
    which Arrow refuses, come as lists of entries.

    Java writes checksums but does not verify them: of 300 flipped bits in a file of Java, 256 read as other rows
    without verification, none with it. 5 M rows of three columns take 0.21 s instead of 0.20 s.
    """
    parquet, footer = _opened(source, shows_entries=shows_entries)
    columns = [parquet.schema.column(number) for number in range(len(parquet.schema))]
    names = frozenset(column.path for column in columns if column.physical_type == "INT96")
    if not names:
        return parquet, names
    footer = footer or read_footer(source)
    _retype(footer)
    return _under(footer, source), names


def _opened(source: pa.NativeFile, *, shows_entries: bool) -> tuple[pq.ParquetFile, Fields | None]:
    """The file, and its footer if that is not as it was stored."""
    try:
        return pq.ParquetFile(source, page_checksum_verification=True), None
    except pa.ArrowInvalid as failure:
        if not shows_entries or _OPTIONAL_KEYS not in str(failure):
            raise
        footer = read_footer(source)
        declare_lists(footer)
        return _under(footer, source), footer


def _under(footer: Fields, source: pa.NativeFile) -> pq.ParquetFile:
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + footer_bytes(footer)))
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def _retype(footer: Fields) -> None:
    for element in structs(footer, _SCHEMA):
        if element.get(_TYPE) == _INT96:
            element |= {_TYPE: _FIXED, _LENGTH: (I32, _WIDTH)}
    chunks = [chunk for group in structs(footer, _ROW_GROUPS) for chunk in structs(group, _COLUMNS)]
    for chunk in chunks:
        _, column = chunk[_METADATA]
        if column[_TYPE] == _INT96:
            column[_TYPE] = _FIXED
