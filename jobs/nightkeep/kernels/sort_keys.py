"""Columns of a lexicographic sort, each ascending or descending -> keys whose plain ascending order is that sort.

Values are ordered as the Iceberg spec orders them ("Sort Orders"): numbers and times by value, false < true,
-0.0 < 0.0, every NaN equal and greatest (Double.compare of Java), texts and bytes by unsigned bytes with a prefix
first. Nulls come first or last, whatever the direction. No gate imports this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Rows, Words, buffer_values, is_bytes, one_array
from nightkeep.kernels.key_digits import ordered_floats
from nightkeep.kernels.key_order import EncodedKeys, encode
from nightkeep.kernels.ranks import places_in
from nightkeep.model.arrow_types import Array, ChunkedArray

_INVERT = np.uint8(0xFF)
_NUL, _ESCAPED, _END = b"\x00", b"\x00\xff", b"\x00\x00"
"""Inverted bytes need an end that is greater than all bytes: otherwise a prefix would still come first."""


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One column of the sort."""

    values: ChunkedArray
    descending: bool
    nulls_first: bool


def sort_keys(columns: Sequence[SortColumn]) -> pa.Table:
    """Two columns for each: where its nulls are, and its values. Keys of one sort have one schema.

    Raises ValueError for a type without an order.
    """
    arrays = [array for column in columns for array in _arrays(column)]
    return pa.Table.from_arrays(arrays, [str(place) for place in range(len(arrays))])


def sorted_rows(keys: pa.Table) -> Rows:
    """The rows by ascending key, equal keys in their given order."""
    (encoded,) = encode(keys)
    everything = np.arange(keys.num_rows)
    words = [encoded.word(k, everything) for k in range(len(encoded.words))]
    return np.lexsort(words[::-1])


def distinct_keys(keys: pa.Table, most: int) -> pa.Table:
    """At most `most` of the keys, evenly spread, ascending strictly."""
    if not keys.num_rows:
        return keys
    ordered = keys.take(sorted_rows(keys))
    if ordered.num_rows > most:
        ordered = ordered.take(np.arange(most) * ordered.num_rows // most)
    (encoded,) = encode(ordered)
    rows = np.arange(ordered.num_rows)
    words = [encoded.word(k, rows) for k in range(len(encoded.words))]
    first = np.ones(ordered.num_rows, np.bool_)
    first[1:] = np.any([word[1:] != word[:-1] for word in words], axis=0)
    return ordered.take(np.flatnonzero(first))


def keys_among(bounds: pa.Table, keys: pa.Table) -> Words:
    """The place of each key among the bounds, which ascend strictly: 2 n + 1 for a key that equals bound n, else 2 n
    for one with n bounds below it. So keys at an odd place are all equal."""
    if not bounds.num_rows or not keys.num_rows:
        return np.zeros(keys.num_rows, np.uint64)
    ends, rows = encode(bounds, keys)
    places = places_in(ends, rows)
    among = 2 * places.astype(np.uint64)
    among[_equal(ends, rows, places, bounds.num_rows)] += np.uint64(1)
    return among


def _equal(ends: EncodedKeys, rows: EncodedKeys, places: Rows, count: int) -> Rows:
    equal = np.flatnonzero(places < count)
    for k in range(len(ends.words)):
        equal = equal[ends.word(k, places[equal]) == rows.word(k, equal)]
    return equal


def _arrays(column: SortColumn) -> Iterator[Array]:
    values = one_array(column.values)
    is_null = values.is_null()
    yield pc.invert(is_null) if column.nulls_first else is_null
    ordered = _ordered(values)
    yield _descending(ordered) if column.descending else ordered


def _ordered(values: Array) -> Array:
    """The values without nulls: a flag puts their rows where they belong. Numbers but decimals are int64."""
    kind = values.type
    if is_bytes(kind):
        return values.cast(pa.large_binary()).fill_null(b"")
    if pa.types.is_decimal(kind):
        return values.fill_null(pa.scalar(0, kind))
    if pa.types.is_floating(kind):
        floats = values.fill_null(pa.scalar(0, kind)).to_numpy()
        return pa.array(ordered_floats(floats).astype(np.int64))
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not pa.types.is_integer(kind):
        raise ValueError(f"type {kind}, expected one with an order")
    return values.cast(pa.int64()).fill_null(0)


def _descending(values: Array) -> Array:
    if pa.types.is_decimal(values.type):
        return pc.negate(values)
    if is_bytes(values.type):
        return _inverted(values)
    return pc.bit_wise_not(values)


def _inverted(values: Array) -> Array:
    """Byte strings whose order is the reverse of that of `values`."""
    kind = pa.large_binary()
    escaped: Any = pc.replace_substring(values, cast(str, _NUL), cast(str, _ESCAPED))
    ended: Array = pc.binary_join_element_wise(escaped, pa.scalar(_END, kind), pa.scalar(b"", kind))
    offsets = ended.buffers()[1]
    inverted = pa.py_buffer((buffer_values(ended, 2, np.dtype(np.uint8)) ^ _INVERT).tobytes())
    return pa.Array.from_buffers(kind, len(ended), [None, offsets, inverted], 0, ended.offset)
