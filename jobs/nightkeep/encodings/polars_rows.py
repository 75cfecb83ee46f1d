"""Row group of a Parquet file -> Arrow batches, decoded by Polars: the gate's decoder, beside Arrow's of a rewrite.

Polars takes half of Arrow's CPU for flat columns. It only decodes what is stored: it gets the pages of one row group
under a footer made here, which declares decimals, and else numbers and bytes without a meaning. What they mean is put
on afterwards, by the file's Arrow schema, over the same memory. Whether it decodes a group is decided before, by types,
encodings, sizes, headers and checksums of pages; Arrow decodes the others, and the rest of one at which Polars fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.parquet_footer import BINARY, I32, I64, LIST, STRUCT, Fields, footer_bytes
from nightkeep.encodings.parquet_rows import ParquetGroup, leaf_bounds
from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.kernels.arrow_buffers import VIEWS
from nightkeep.kernels.parquet_pages import FlatChunk, has_sound_pages
from nightkeep.model.arrow_types import Array, ArrowField

LEAST_ROWS: Final = 1 << 12
"""A smaller group is not worth a call of Polars: 0.2 ms, what Arrow takes for so many rows more than Polars."""
STORED_BYTES: Final = 64 << 20
DECODED_BYTES: Final = 32 << 20
"""What is in memory at once, of a group as it is stored and of its decoded rows. Arrow reads larger groups page by
page."""

_MAGIC: Final = b"PAR1"
_FIXED: Final = "FIXED_LEN_BYTE_ARRAY"
_PHYSICAL: Final = {"BOOLEAN": 0, "INT32": 1, "INT64": 2, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6, _FIXED: 7}
_DECIMAL: Final = 5
_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6}
_ENCODINGS: Final = {
    "PLAIN": 0,
    "PLAIN_DICTIONARY": 2,
    "RLE": 3,
    "BIT_PACKED": 4,
    "DELTA_BINARY_PACKED": 5,
    "DELTA_LENGTH_BYTE_ARRAY": 6,
    "RLE_DICTIONARY": 8,
    "BYTE_STREAM_SPLIT": 9,
}
"""Numbers of parquet.thrift, of what Polars decodes. DELTA_BYTE_ARRAY has no size of its decoded values."""
_NOT_OF_FIXED: Final = "BYTE_STREAM_SPLIT"
"""The encoding of values of fixed length that Polars has not."""
_WIDTHS: Final[Mapping[str, int]] = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_VIEW_BYTES: Final = 16
_DECIMAL_BYTES: Final = 16
_LEAST_BITS: Final = 32
"""Of a whole number, as it is stored."""
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary_view(),
}
"""What Polars makes of columns without a meaning, in Arrow's types."""


def polars_batches(group: ParquetGroup, batch_rows: int) -> Iterator[pa.RecordBatch] | None:
    """The group's leaves in batches of at most `batch_rows` rows, in their order; None if Arrow is to decode the group.

    Texts and bytes come as Arrow's views. Raises CorruptMetadata.
    """
    footer = group.footer.row_group(group.number)
    fields = _flat_fields(group)
    if fields is None or footer.num_rows < LEAST_ROWS:
        return None
    chunks = [footer.column(leaf) for leaf in group.leaves]
    if not all(_fits(chunk, field) for chunk, field in zip(chunks, fields, strict=True)):
        return None
    start = min(map(_start, chunks))
    size = max(_start(chunk) + chunk.total_compressed_size for chunk in chunks) - start
    if size > min(STORED_BYTES, 2 * sum(chunk.total_compressed_size for chunk in chunks)):
        return None
    return _decoded(group, fields, chunks, (start, size), batch_rows)


def _flat_fields(group: ParquetGroup) -> list[ArrowField] | None:
    """The fields that the leaves store; None if one is within another, or there is none."""
    bounds = leaf_bounds(group.fields)
    at = {leaf: field for leaf, stop, field in zip(bounds, bounds[1:], group.fields, strict=False) if stop == leaf + 1}
    fields = [at.get(leaf) for leaf in group.leaves]
    flat = [field for field in fields if field is not None and not pa.types.is_nested(field.type)]
    return flat if flat and len(flat) == len(fields) else None


def _fits(chunk: pq.ColumnChunkMetaData, field: ArrowField) -> bool:
    known = chunk.compression in _CODECS and _ENCODINGS.keys() >= set(chunk.encodings)
    if chunk.physical_type == _FIXED and _NOT_OF_FIXED in chunk.encodings:
        return False
    return known and _start(chunk) >= len(_MAGIC) and _has_bits_of(chunk.physical_type, field.type)


def _has_bits_of(physical: str, kind: pa.DataType) -> bool:
    """Whether a value of the type has the bits of what is stored, or the lowest of them."""
    if physical == "BYTE_ARRAY":
        return kind in VIEWS
    if pa.types.is_decimal128(kind):
        return physical in ("INT32", "INT64", _FIXED)
    if physical == _FIXED:
        return pa.types.is_fixed_size_binary(kind)
    if physical not in _PLAIN:
        return False
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return kind == _PLAIN[physical]
    if pa.types.is_integer(kind):
        return physical == ("INT64" if kind.bit_width == _PLAIN["INT64"].bit_width else "INT32")
    is_time = pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_date32(kind)
    return is_time and kind.bit_width == _PLAIN[physical].bit_width


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    page, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    return page if not dictionary else min(page, dictionary)


def _decoded(
    group: ParquetGroup,
    fields: Sequence[ArrowField],
    chunks: Sequence[pq.ColumnChunkMetaData],
    span: tuple[int, int],
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    rows = group.footer.row_group(group.number).num_rows
    whole = _file_of(group, fields, chunks, span)
    _require_sound_pages(group, whole, chunks, len(_MAGIC) - span[0])
    lengths = [group.footer.schema.column(leaf).length or 0 for leaf in group.leaves]
    of_leaves = zip(chunks, fields, lengths, strict=True)
    size = sum(_decoded_bytes(chunk, field, length, rows) for chunk, field, length in of_leaves)
    at_once = max(batch_rows, rows * DECODED_BYTES // max(1, size))
    for start in range(0, rows, at_once):
        for batch in _frame(group, whole, start, at_once).to_arrow(compat_level=_VIEWS).to_batches(batch_rows):
            columns = [_typed(array, field.type) for array, field in zip(batch.columns, fields, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, [field.name for field in fields])


def _require_sound_pages(
    group: ParquetGroup, whole: bytes, chunks: Sequence[pq.ColumnChunkMetaData], shift: int
) -> None:
    """Raise CorruptMetadata for pages that Polars is not to see: it allocates what a header states before it looks at
    the page, and of a negative count that ends the process; and it takes for rows what other readers find damaged."""
    rows = group.footer.row_group(group.number).num_rows
    for leaf, chunk in zip(group.leaves, chunks, strict=True):
        start = _start(chunk) + shift
        stop, codec = start + chunk.total_compressed_size, chunk.compression
        column = group.footer.schema.column(leaf)
        width = column.length if chunk.physical_type == _FIXED else _WIDTHS.get(chunk.physical_type)
        size, nullable = chunk.total_uncompressed_size, column.max_definition_level > 0
        flat = FlatChunk(start, stop, chunk.num_values, size, codec, width, nullable)
        if chunk.num_values != rows or not has_sound_pages(whole, flat):
            subject = f"{group.subject} column {chunk.path_in_schema}"
            raise CorruptMetadata(subject, f"{rows} rows in pages of known headers", "others")


_VIEWS: Final = pl.CompatLevel.newest()


def _frame(group: ParquetGroup, whole: bytes, start: int, rows: int) -> pl.DataFrame:
    try:
        plan = pl.scan_parquet(whole, parallel="none", use_statistics=False, cache=False, glob=False)
        return plan.slice(start, rows).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise CorruptMetadata(group.subject, "pages of a Parquet file", reason_of(failure)) from failure


def _decoded_bytes(chunk: pq.ColumnChunkMetaData, field: ArrowField, length: int, rows: int) -> int:
    """Of the rows of a chunk. `length`: of values of fixed length, which take it as often as they repeat."""
    if pa.types.is_decimal128(field.type):
        return _DECIMAL_BYTES * rows
    if chunk.physical_type == _FIXED:
        return (length + _VIEW_BYTES) * rows
    width = _WIDTHS.get(chunk.physical_type)
    return chunk.total_uncompressed_size + _VIEW_BYTES * rows if width is None else width * rows


def _typed(array: Array, kind: pa.DataType) -> Array:
    """The values as `kind`, over the same memory."""
    target = VIEWS.get(kind, kind)
    if array.type == target:
        return array
    if pa.types.is_fixed_size_binary(target) or (pa.types.is_integer(target) and target.bit_width < _LEAST_BITS):
        # As Arrow's decoder does, narrow numbers take the lowest bits.
        return array.cast(target, safe=False)
    typed = pa.Array.from_buffers(target, len(array), array.buffers(), array.null_count, array.offset)
    return typed


def _file_of(
    group: ParquetGroup, fields: Sequence[ArrowField], chunks: Sequence[pq.ColumnChunkMetaData], span: tuple[int, int]
) -> bytes:
    """A Parquet file of one row group: the pages as they are, under a footer of their own."""
    start, size = span
    group.source.seek(start)
    pages = group.source.read_buffer(size)
    if pages.size < size:
        raise CorruptMetadata(group.subject, f"{size} bytes of pages from byte {start} on", str(pages.size))
    return b"".join((_MAGIC, pages, footer_bytes(_footer(group, fields, chunks, len(_MAGIC) - start))))


def _footer(
    group: ParquetGroup, fields: Sequence[ArrowField], chunks: Sequence[pq.ColumnChunkMetaData], shift: int
) -> Fields:
    """FileMetaData, as parquet.thrift numbers its fields."""
    rows = group.footer.row_group(group.number).num_rows
    root: Fields = {4: _text("schema"), 5: (I32, len(chunks))}
    pairs = enumerate(zip(group.leaves, fields, strict=True))
    leaves = [_element(group, leaf, place, field.type) for place, (leaf, field) in pairs]
    columns = [_column(chunk, place, shift) for place, chunk in enumerate(chunks)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    row_group: Fields = {1: _list(STRUCT, columns), 2: (I64, size), 3: (I64, rows)}
    return {1: (I32, 2), 2: _list(STRUCT, [root, *leaves]), 3: (I64, rows), 4: _list(STRUCT, [row_group])}


def _element(group: ParquetGroup, leaf: int, place: int, kind: pa.DataType) -> Fields:
    column = group.footer.schema.column(leaf)
    is_optional = column.max_definition_level > 0
    fields: Fields = {1: (I32, _PHYSICAL[column.physical_type]), 3: (I32, int(is_optional)), 4: _text(str(place))}
    if column.physical_type == _FIXED:
        fields[2] = (I32, column.length)
    if isinstance(kind, pa.Decimal128Type):
        fields |= {6: (I32, _DECIMAL), 7: (I32, kind.scale), 8: (I32, kind.precision)}
    return fields


def _column(chunk: pq.ColumnChunkMetaData, place: int, shift: int) -> Fields:
    fields: Fields = {
        1: (I32, _PHYSICAL[chunk.physical_type]),
        2: _list(I32, [_ENCODINGS[encoding] for encoding in chunk.encodings]),
        3: _list(BINARY, [str(place).encode()]),
        4: (I32, _CODECS[chunk.compression]),
        5: (I64, chunk.num_values),
        6: (I64, chunk.total_uncompressed_size),
        7: (I64, chunk.total_compressed_size),
        9: (I64, chunk.data_page_offset + shift),
    }
    if chunk.dictionary_page_offset:
        fields[11] = (I64, chunk.dictionary_page_offset + shift)
    return {2: (I64, _start(chunk) + shift), 3: (STRUCT, fields)}


def _text(text: str) -> tuple[int, bytes]:
    return BINARY, text.encode()


def _list(kind: int, values: Sequence[Any]) -> tuple[int, tuple[int, Sequence[Any]]]:
    return LIST, (kind, values)
