"""Keys of equality deletes and keys of data rows -> the deleted rows. Hashes find candidates, values decide.

Iceberg table spec, "Equality Delete Files" and "Scan Planning": null equals null, and a delete only applies to data
with an older sequence number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import WORD_BITS, Rows, Words, one_array
from nightkeep.kernels.row_hash import hash_blocks
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum

Flags = npt.NDArray[np.bool_]

# 4 M rows against 400,000 keys: with eight slots a bucket one absent key in sixteen gets past the filter, which then
# takes 20 ms and the search behind it 30; with two slots 31 and 83.
_SLOTS_BITS = 3


@dataclass(frozen=True, slots=True)
class EqualityIndex:
    """Each deleted key once, with its greatest sequence number. Takes about 40 bytes per key besides the keys.

    Entries are ordered by hash. The leading bits of a hash are its bucket b, with entries `first[b]` to `first[b + 1]`.
    `filled` has a flag for some more leading bits: whether any entry has them.
    """

    keys: pa.Table
    hashes: Words
    sequences: npt.NDArray[np.int64]
    first: npt.NDArray[np.int32]
    filled: Flags

    @classmethod
    def of(cls, deletes: Iterable[tuple[pa.Table, int]]) -> EqualityIndex:
        """Index tables of keys, each with the sequence number of its delete file; at least one table.

        All have the same columns, of equal types and in one order; keys may repeat, and have nulls. Raises ValueError
        naming the column for differing types, and for nested types, which cannot be a key. Floats are equal as in Java:
        NaN equals NaN, and 0.0 differs from -0.0 (Comparators.java, JavaHashes.java).
        """
        keyed = [(_plain(keys), sequence) for keys, sequence in deletes]
        for table, _ in keyed:
            _require_types(table, keyed[0][0].schema)
        keys = pa.concat_tables([table for table, _ in keyed]).combine_chunks()
        numbers = np.repeat([sequence for _, sequence in keyed], [table.num_rows for table, _ in keyed])
        hashes = _hashes(keys)
        order = np.argsort(hashes)
        hashes = hashes[order]
        starts = _starts(keys, hashes, order)
        newest = np.maximum.reduceat(numbers[order], starts) if len(starts) else numbers
        hashes, bits = hashes[starts], max(1, len(starts).bit_length())
        buckets = (hashes >> np.uint64(WORD_BITS - bits)).astype(np.int64)
        first = np.zeros(2**bits + 1, np.int32)
        np.cumsum(np.bincount(buckets, minlength=2**bits), out=first[1:])
        filled = np.zeros(2 ** (bits + _SLOTS_BITS), np.bool_)
        filled[hashes >> _shift(filled)] = True
        return cls(_taken(keys, order[starts]), hashes, newest.astype(np.int64), first, filled)

    def hidden(self, keys: pa.Table, sequence: int) -> npt.NDArray[np.int64]:
        """Ascending indexes of the rows of `keys` whose key was deleted after `sequence`, their file's number.

        `keys` has the index's columns, in the same order. Raises ValueError as `of`. Cost: a hash of every row, and a
        comparison of values for rows whose hash is that of a deleted key.
        """
        plain = _plain(keys)
        _require_types(plain, self.keys.schema)
        hits, start = [np.empty(0, np.int64)], 0
        for batch in plain.to_batches() if len(self.hashes) else []:
            hits.append(start + self._hidden(batch, sequence))
            start += batch.num_rows
        return np.concatenate(hits)

    def _hidden(self, batch: pa.RecordBatch, sequence: int) -> Rows:
        rows, hashes = self._candidates(batch)
        bucket = (hashes >> np.uint64(WORD_BITS - (len(self.first) - 1).bit_length() + 1)).astype(np.int64)
        place, stop = self.first[bucket], self.first[bucket + 1]
        pairs = [(rows[:0], place[:0])]
        tried = np.flatnonzero(place < stop)
        while len(tried):
            at = place[tried]
            hit = (self.hashes[at] == hashes[tried]) & (self.sequences[at] > sequence)
            pairs.append((rows[tried[hit]], at[hit]))
            place[tried] += 1
            tried = tried[place[tried] < stop[tried]]
        left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return np.unique(left[_equal(pa.Table.from_batches([batch]), left, self.keys, right)])

    def _candidates(self, batch: pa.RecordBatch) -> tuple[Rows, Words]:
        """Rows whose key may be in the index, and their hashes."""
        shift, start = _shift(self.filled), 0
        pairs: list[tuple[Rows, Words]] = [(np.empty(0, np.int64), np.empty(0, np.uint64))]
        for hashes, _ in hash_blocks(batch.columns, batch.num_rows):
            rows = np.flatnonzero(self.filled[hashes >> shift])
            pairs.append((rows + start, hashes[rows]))
            start += len(hashes)
        return np.concatenate([rows for rows, _ in pairs]), np.concatenate([each for _, each in pairs])


def _starts(keys: pa.Table, hashes: Words, order: Rows) -> Rows:
    """Indexes in `order`, which is by hash, where a new key starts. Keys that share a hash may start several times."""
    repeats = np.append(np.zeros(min(1, len(order)), np.bool_), hashes[1:] == hashes[:-1])
    at = np.flatnonzero(repeats)
    repeats[at] = _equal(keys, order[at], keys, order[at - 1])
    return np.flatnonzero(~repeats)


def _equal(held: pa.Table, rows: Rows, keys: pa.Table, places: npt.NDArray[np.generic]) -> Flags:
    """Whether each row of `rows` has the key that is at its place in `keys`; null equals null."""
    equal = np.ones(len(rows), np.bool_)
    for left, right in zip(_taken(held, rows).columns, _taken(keys, places).columns, strict=True):
        same = pc.equal(left, right)
        if same.null_count:
            same = pc.if_else(pc.is_null(same), pc.and_(pc.is_null(left), pc.is_null(right)), same)
        equal &= same.to_numpy()
    return equal


def _taken(rows: pa.Table, places: npt.NDArray[np.generic]) -> pa.Table:
    return rows.take(pa.array(places))


def _hashes(keys: pa.Table) -> Words:
    columns = [one_array(column) for column in keys.columns]
    blocks = [hashes for hashes, _ in hash_blocks(columns, keys.num_rows)]
    return np.concatenate([np.empty(0, np.uint64), *blocks])


def _shift(filled: Flags) -> np.uint64:
    return np.uint64(WORD_BITS - len(filled).bit_length() + 1)


def _plain(keys: pa.Table) -> pa.Table:
    """The keys in plain types: no dictionaries, no extension types, strings and binary with plain offsets; floats as
    the integers of their bits."""
    schema = pa.schema([pa.field(field.name, _plain_type(field.name, field.type)) for field in keys.schema])
    if schema.types == keys.schema.types:
        return keys
    columns = [
        _bits(column) if column.type in _BITS else column.cast(kind)
        for column, kind in zip(keys.columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


_BITS: Final[Mapping[pa.DataType, pa.DataType]] = {pa.float32(): pa.uint32(), pa.float64(): pa.uint64()}


def _bits(column: ChunkedArray) -> ChunkedArray:
    """Floats as the integers of their bits: unsigned, as no column is. All NaN are one, as in Java's floatToIntBits."""
    nan: Datum = pa.scalar(math.nan, column.type)
    numbers: Array = pc.if_else(pc.is_nan(column), nan, column).combine_chunks()
    bits: Array = numbers.view(_BITS[column.type])
    return pa.chunked_array([bits])


def _plain_type(name: str, kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(name, kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _plain_type(name, kind.value_type)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
    if kind in _BITS:
        return _BITS[kind]
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        raise ValueError(f"key column {name!r}: type {kind}, expected one whose values are equal or not")
    return kind


def _require_types(keys: pa.Table, schema: pa.Schema) -> None:
    if len(keys.schema) != len(schema):
        raise ValueError(f"keys of {len(keys.schema)} columns, expected {len(schema)}")
    for field, other in zip(keys.schema, schema, strict=True):
        if field.type != other.type:
            raise ValueError(f"key column {field.name!r}: type {field.type}, expected {other.type}")
