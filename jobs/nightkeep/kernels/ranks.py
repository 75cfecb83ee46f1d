"""A column -> range ids: the rank of each row's value, as a few bits.

Values are ordered as Spark orders them: numbers and times by value, false < true, the two zeros equal, every NaN
equal and last, strings and binary by unsigned bytes with a prefix first. Nulls come before all values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Rows, is_bytes, one_array
from nightkeep.kernels.key_order import EncodedKeys, encode
from nightkeep.model.arrow_types import Array, ChunkedArray, Column

Ids = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.integer | np.floating]

NULL_ID = 0
# Small enough that a block's temporaries stay in the second-level cache; a smaller batch is not worth a table.
_BLOCK_ROWS = 16_384
_BUCKETS = 32_768


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of one column, nulls included, drawn evenly from `rows` rows."""

    values: Column
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class RangeBounds:
    """The ranges of one column: range i ends with `values[i]`, the last one has no end.

    `values` ascend strictly, without nulls. `ids`, one more than values, ascend strictly below 2 ** `bits`.
    """

    values: Array
    ids: Ids
    bits: int


def bounds_of(samples: Sequence[Sample], range_ids: int = 1000) -> RangeBounds:
    """Cut a column into at most `range_ids` ranges of about as many rows each, from samples of its parts.

    A value's middle, the share of rows below it and half of its own, decides in which of `range_ids` equal slots it
    belongs; a range is all values of a slot, so a value of two slots' rows or more has a range of its own. Nulls
    have id 0 to themselves where the samples have any, and take no rows from the slots of the values. Ids are the
    slots stretched to 2 ** `bits`, `bits` being what `range_ids` ids need: a column of two values of as many rows
    each differs in the highest bit, not in the lowest.
    There is at least one sample, all have one type. Raises ValueError for a type without an order.
    Source: Delta's RangePartitionId over Spark's RangePartitioner, whose ids are not stretched and whose nulls
    share id 0 with the smallest values.
    """
    if range_ids < 2:
        raise ValueError(f"{range_ids} range ids, expected at least 2")
    column = _chunked(samples)
    weights = np.concatenate([np.full(len(s.values), s.rows / max(1, len(s.values))) for s in samples])
    first = 1 if column.null_count else 0
    if column.null_count:
        weights = weights[pc.is_valid(column).to_numpy()]
    values = present_values(column)
    order, starts = ascending(values)
    slots = _slots(weights[order], starts, range_ids - first)
    last = np.flatnonzero(slots[1:] != slots[:-1])
    bits = (range_ids - 1).bit_length()
    used = slots[np.append(last, len(slots) - 1)] if len(slots) else np.zeros(1, np.int64)
    ids = first + used * (2**bits - first) // (range_ids - first)
    return RangeBounds(values.take(order[starts[last]]).cast(column.type), ids.astype(np.uint32), bits)


def rank_ids(bounds: RangeBounds, column: Column) -> Ids:
    """The range id of each row: of the first range that does not end below it; NULL_ID for a null.

    A column of another type than the bounds is cast to theirs first, as where a file is older than a type change;
    raises Arrow's ValueError where that fails.
    """
    rows = _chunked([Sample(column, len(column))])
    kind = bounds.values.type
    if rows.type != kind and not (is_bytes(rows.type) and is_bytes(kind)):
        rows = rows.cast(kind)
    if not rows.null_count:
        return bounds.ids[_bounds_below(bounds.values, present_values(rows))]
    ids = np.full(len(rows), NULL_ID, np.uint32)
    ids[pc.is_valid(rows).to_numpy()] = bounds.ids[_bounds_below(bounds.values, present_values(rows))]
    return ids


def noise(seed: int, rows: int, first_row: int = 0) -> npt.NDArray[np.uint8]:
    """An even random byte for each of `rows` rows from `first_row` on; a row's depends on its number and `seed`.

    Source: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators), its top byte.
    """
    word = np.arange(first_row, first_row + rows, dtype=np.uint64)
    word += np.uint64(seed % 2**64)
    word *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word ^= word >> np.uint64(shift)
        word *= np.uint64(factor)
    return cast(npt.NDArray[np.uint8], (word >> np.uint64(56)).astype(np.uint8))


def ascending(values: Array) -> tuple[Rows, Rows]:
    """The rows of `values` (from present_values) in ascending order, and where each distinct value starts in it."""
    (keys,) = encode(pa.table({"value": values}))
    everything = np.arange(len(values))
    words = [keys.word(k, everything) for k in range(len(keys.words))]
    order = np.lexsort(words[::-1])
    starts = np.ones(len(values), np.bool_)
    starts[1:] = np.any([word[order[1:]] != word[order[:-1]] for word in words], axis=0)
    return order, np.flatnonzero(starts)


def present_values(column: ChunkedArray) -> Array:
    """The values that are not null, as one array, with 0.0 for -0.0."""
    values = one_array(column.drop_null() if column.null_count else column)
    if not pa.types.is_floating(values.type):
        return values
    return cast(Array, pa.array(np.add(values.to_numpy(), 0, dtype=values.to_numpy().dtype)))


def _chunked(samples: Sequence[Sample]) -> ChunkedArray:
    chunks: list[Array] = []
    for each in samples:
        chunks += each.values.chunks if isinstance(each.values, pa.ChunkedArray) else [each.values]
    column = pa.chunked_array(chunks, samples[0].values.type)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _slots(weights: npt.NDArray[np.float64], starts: Rows, count: int) -> Rows:
    """The slot of each distinct value, of `count` slots of equal weight."""
    if not len(starts):
        return starts
    own = np.add.reduceat(weights, starts)
    through = np.cumsum(own)
    if not through[-1]:
        return np.zeros(len(starts), np.int64)
    middles = (through - own / 2) * count / through[-1]
    return cast(Rows, np.minimum(middles.astype(np.int64), count - 1))


def _bounds_below(bounds: Array, values: Array) -> Rows:
    """How many of the ascending `bounds` are smaller than each value."""
    if not len(bounds) or not len(values):
        return np.zeros(len(values), np.int64)
    if pa.types.is_floating(values.type):
        return _places(bounds.to_numpy(), values.to_numpy())
    if bounds.type != values.type:
        # Chunks and slices of strings come as binary of either width; only bytes can differ here.
        bounds, values = bounds.cast(pa.large_binary()), values.cast(pa.large_binary())
    ends, rows = encode(pa.table({"value": bounds}), pa.table({"value": values}))
    return places_in(ends, rows)


def places_in(ends: EncodedKeys, rows: EncodedKeys) -> Rows:
    """How many of the strictly ascending `ends` are smaller than each row. Both were encoded together."""
    return _places(ends.leading, rows.leading) if len(ends.words) == 1 else _places_by_words(ends, rows)


def _places_by_words(ends: EncodedKeys, rows: EncodedKeys) -> Rows:
    """Word by word: a row is placed once it differs from all bounds that agreed with it so far."""
    counts: Rows = np.empty(len(rows.leading), np.int64)
    open_rows = np.arange(len(counts))
    end_codes, codes = ends.leading, rows.leading
    for k in range(len(ends.words)):
        distinct, starts, groups = np.unique(end_codes, return_index=True, return_inverse=True)
        places = _places(distinct, codes)
        counts[open_rows] = np.append(starts, len(end_codes))[places]
        tied = _equal_rows(distinct, codes, places)
        open_rows = open_rows[tied]
        if k + 1 == len(ends.words) or not len(open_rows):
            break
        end_word = ends.word(k + 1, np.arange(len(end_codes)))
        known = np.unique(end_word)
        end_codes = _code(known, end_word, groups)
        codes = _code(known, rows.word(k + 1, open_rows), places[tied])
    return counts


def _code(known: Numbers, word: Numbers, groups: Rows) -> Rows:
    """Numbers that order rows by group, then by where `word` is among the `known`, on one or between two."""
    places = _places(known, word)
    code = groups * (2 * len(known) + 1) + 2 * places
    code[_equal_rows(known, word, places)] += 1
    return code


def _equal_rows(distinct: Numbers, values: Numbers, places: Rows) -> Rows:
    return np.flatnonzero((distinct[np.minimum(places, len(distinct) - 1)] == values) & (places < len(distinct)))


@dataclass(frozen=True, slots=True)
class _Buckets:
    """A monotone map of values to buckets, equally wide from `low` on, and the bounds before each."""

    low: float
    scale: float
    before: Rows
    most: int

    def of(self, values: Numbers) -> Rows:
        place = np.subtract(values, self.low, dtype=np.float64)
        place *= self.scale
        np.clip(place, 0, _BUCKETS - 1, out=place)
        # NaN, which only fmin replaces, has a bucket of its own after all bounds.
        np.fmin(place, _BUCKETS, out=place)
        return cast(Rows, place.astype(np.int64))


def _places(bounds: Numbers, values: Numbers) -> Rows:
    """np.searchsorted(bounds, values) of strictly ascending bounds without NaN, at about a fifth of its time.

    A table gives the bounds before a value's bucket; among those in its bucket all rows search at once.
    """
    buckets = _buckets(bounds) if len(values) >= _BLOCK_ROWS else None
    if buckets is None:
        return np.searchsorted(bounds, values)
    steps = [1 << bit for bit in reversed(range(buckets.most.bit_length()))]
    highest = np.inf if bounds.dtype.kind == "f" else np.iinfo(bounds.dtype.str).max
    ends = np.append(bounds, np.full(2 * steps[0], highest, bounds.dtype))
    counts: Rows = np.empty(len(values), np.int64)
    with np.errstate(over="ignore"):
        for start in range(0, len(values), _BLOCK_ROWS):
            block = values[start : start + _BLOCK_ROWS]
            below = buckets.before[buckets.of(block)]
            for step in steps:
                below += (ends[step - 1 :][below] < block) * np.int64(step)
            counts[start : start + _BLOCK_ROWS] = below
    return counts


def _buckets(bounds: Numbers) -> _Buckets | None:
    """Buckets for the bounds; None if the bounds are equal but for a hundredth at either end."""
    aside = len(bounds) // 100
    low, high = float(bounds[aside]), float(bounds[-1 - aside])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scale = float(np.float64(_BUCKETS) / (np.float64(high) - np.float64(low)))
    if not (np.isfinite(scale) and scale > 0):
        return None
    inside = np.bincount(_Buckets(low, scale, np.zeros(0, np.int64), 0).of(bounds), minlength=_BUCKETS + 1)
    return _Buckets(low, scale, np.cumsum(inside) - inside, int(inside.max()))
