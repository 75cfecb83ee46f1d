"""Columns -> two independent 64-bit hashes per row, block by block. Equal rows hash equally in any encoding.

Polars hashes numbers and bytes, with two seeds: compiled, and the same in every process of one version. A row's hash
takes in one column after the other, so a value counts by its column and by its neighbours. The last column is always
one of numbers: Polars takes in bytes by shifts and additions, and numbers by folded multiplications, which are not
linear, so that sums of hashes differ for rows that swapped values. Numbers are given as their bits, because to Polars
the two zeros are equal, and so is every NaN.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import BYTE_BITS, WORD_BYTES, Words, buffer_values, is_bytes
from nightkeep.model.arrow_types import Array, ListArray

# What two passes read stays in a core's cache: 37 ns a row of six columns, 47 in blocks of 65,536.
_BLOCK_ROWS = 16_384
# Digits of pi.
_SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344)


_BYTES = {pa.string(): pa.binary(), pa.string_view(): pa.binary_view()}


def hash_blocks(columns: Sequence[Array], rows: int) -> Iterator[tuple[Words, Words]]:
    """The two hashes of each of `rows` rows, in row order. Raises ValueError for a type without a rule."""
    parts = [part for column in columns for part in _parts(column)]
    if not parts or is_bytes(parts[-1].type):
        parts.append(pa.nulls(rows, pa.uint8()))
    whole = pl.DataFrame(pa.RecordBatch.from_arrays(parts, [str(place) for place in range(len(parts))]))
    for start in range(0, rows, _BLOCK_ROWS):
        block = whole.slice(start, _BLOCK_ROWS)
        first, second = (block.hash_rows(seed).to_numpy() for seed in _SEEDS)
        yield first, second


def _parts(column: Array) -> Sequence[Array]:
    """The values as binary, or as unsigned numbers of up to 64 bits: one array per such part of a value."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_null(kind):
        return [column.cast(pa.uint8())]
    if is_bytes(kind):
        return [column]
    if pa.types.is_struct(kind):
        return _with_nulls_of(column, _hashes(cast(pa.StructArray, column).flatten(), len(column)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _with_nulls_of(column, _list_words(cast(ListArray, column)))
    return _numbers(column)


def _plain(column: Array) -> Array:
    """The same values in a form `_parts` reads."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pa.DictionaryArray):
        return _plain(column.dictionary_decode())
    if pa.types.is_fixed_size_list(kind):
        return column.cast(pa.list_(kind.value_field))
    if is_bytes(kind) and kind not in (pa.binary(), pa.binary_view()):
        return column.cast(_BYTES.get(kind, pa.large_binary()))
    if pa.types.is_boolean(kind):
        return column.cast(pa.uint8())
    return column


def _numbers(column: Array) -> Sequence[Array]:
    kind = column.type
    if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        raise ValueError(f"column type {kind}, expected one whose values have a hash")
    width = kind.bit_width // BYTE_BITS
    if width <= WORD_BYTES:
        unsigned = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}[width]
        buffers = column.buffers()[:2]
        return [pa.Array.from_buffers(unsigned, len(column), buffers, column.null_count, column.offset)]
    words = buffer_values(column, 1, np.dtype("<u8")).reshape(-1, width // WORD_BYTES)
    return _with_nulls_of(column, list(words[column.offset : column.offset + len(column)].T))


def _with_nulls_of(column: Array, words: Sequence[Words]) -> Sequence[Array]:
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return [pa.array(np.ascontiguousarray(part), mask=nulls) for part in words]


def _hashes(columns: Sequence[Array], rows: int) -> tuple[Words, Words]:
    blocks = [*hash_blocks(columns, rows), (np.empty(0, np.uint64), np.empty(0, np.uint64))]
    return np.concatenate([first for first, _ in blocks]), np.concatenate([second for _, second in blocks])


def _list_words(column: ListArray) -> Sequence[Words]:
    """For each list: its length, and two sums of its items' hashes, each taken with its index in the list.

    The entries of a map have no place.
    """
    offsets = column.offsets.to_numpy()
    items: list[Array] = [column.values.slice(offsets[0], offsets[-1] - offsets[0])]
    starts, stops = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    if not pa.types.is_map(column.type):
        items.append(pa.array(np.arange(len(items[0])) - np.repeat(starts, np.diff(offsets))))
    words = [(stops - starts).astype(np.uint64)]
    for hashes in _hashes(items, len(items[0])):
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64))
        words.append(sums[stops] - sums[starts])
    return words
