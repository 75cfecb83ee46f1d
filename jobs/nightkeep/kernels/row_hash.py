"""Columns -> two independent 64-bit hashes per row, block by block. Equal rows hash equally in any encoding.

Each value becomes bytes, or numbers of up to 64 bits, which flat_hash takes in. What is nested comes in as hashes.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import BYTE_BITS, WORD_BYTES, Words, buffer_values, is_bytes
from nightkeep.kernels.flat_hash import flat_hash_blocks, joined
from nightkeep.kernels.variant_hash import variant_words
from nightkeep.model.arrow_types import Array, ListArray
from nightkeep.model.variant_type import is_variant

_BYTES = {pa.string(): pa.binary(), pa.string_view(): pa.binary_view()}


def hash_blocks(columns: Sequence[Array], rows: int) -> Iterator[tuple[Words, Words]]:
    """The two hashes of each of `rows` rows, in row order. Raises ValueError for a type without a rule."""
    return flat_hash_blocks([part for column in columns for part in _parts(column)], rows)


def _parts(column: Array) -> Sequence[Array]:
    """The values as binary, or as unsigned numbers of up to 64 bits: one array per such part of a value."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_null(kind):
        return [column.cast(pa.uint8())]
    if is_bytes(kind):
        return [column]
    if is_variant(kind):
        return _with_nulls_of(column, variant_words(cast(pa.StructArray, column)))
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
    return joined(hash_blocks(columns, rows))


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
