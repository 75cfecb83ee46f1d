"""The values of one column -> places on a line, as float64, so that parts of a range can be measured."""

from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import WORD_BITS, Rows, byte_spans, is_bytes
from nightkeep.kernels.key_digits import Bytes, Slot
from nightkeep.kernels.ranks import ascending
from nightkeep.model.arrow_types import Array

Floats = npt.NDArray[np.float64]

# A prefix that this share of the values has gets a stretch of its own.
_OWN_STRETCH = 0.01


@dataclass(frozen=True, slots=True)
class Numeric:
    """Numbers, times (in their unit) and booleans are placed at their value, NaN after all others."""

    def places(self, values: Array) -> Floats:
        """The place of each value; zero for nulls."""
        kind = values.type
        if pa.types.is_temporal(kind):
            values = values.cast(pa.int64() if kind.bit_width == WORD_BITS else pa.int32())
        elif pa.types.is_boolean(kind):
            values = values.cast(pa.uint8())
        return np.asarray(values.cast(pa.float64(), safe=False).fill_null(0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Bytes from `firsts[k]` on are placed between `edges[k]` and `edges[k + 1]`.

    The eight bytes after `prefixes[k]` make a number: `lows[k]` is placed at the first edge, `lows[k] + widths[k]` at
    the second. `firsts` ascend strictly.
    """

    firsts: Array
    prefixes: tuple[bytes, ...]
    lows: Floats
    widths: Floats
    edges: Floats

    def places(self, values: Array) -> Floats:
        """The place of each value; for nulls that of the empty string."""
        values = _plain(values)
        below, shares = _among(self.firsts, values)
        stretch = below - 1 + shares
        places = np.zeros(len(values))
        for k in np.unique(stretch[stretch >= 0]):
            rows = np.flatnonzero(stretch == k)
            within = (_following(values.take(rows), self.prefixes[k]) - self.lows[k]) / self.widths[k]
            length = self.edges[k + 1] - self.edges[k]
            places[rows] = np.minimum(self.edges[k] + np.clip(within, 0.0, 1.0) * length, self.edges[k + 1])
        return places


Axis: TypeAlias = Numeric | Stretches


def even_axis(lows: Array, highs: Array) -> Axis:
    """An axis on which values between `lows` and `highs` are spread about evenly.

    Numbers are placed at their value. Bytes are placed by the number in the eight bytes after the prefix that all
    values share. If many values have the same eight bytes, these get a stretch of their own, as long as its count of
    distinct values.
    """
    if not is_bytes(lows.type):
        return Numeric()
    distinct = _distinct(lows, highs)
    if not len(distinct):
        return Stretches(distinct, (), np.zeros(0), np.zeros(0), np.zeros(0))
    words = _following(distinct, _shared(distinct, 0, len(distinct) - 1))
    _, word_of, counts = np.unique(words, return_inverse=True, return_counts=True)
    own = (counts >= max(3, _OWN_STRETCH * len(distinct)))[word_of]
    changes = (word_of[1:] != word_of[:-1]) & (own[1:] | own[:-1])
    edges = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(distinct)]])
    firsts, lasts = distinct.take(edges[:-1]), distinct.take(edges[1:] - 1)
    prefixes = tuple(_shared(distinct, edges[k], edges[k + 1] - 1) for k in range(len(firsts)))
    low, high = (
        np.array([_following(ends.slice(k, 1), prefix)[0] for k, prefix in enumerate(prefixes)])
        for ends in (firsts, lasts)
    )
    return Stretches(firsts, prefixes, low, np.where(high > low, high - low, np.inf), edges.astype(np.float64))


def _following(values: Array, prefix: bytes) -> Floats:
    """The number in the eight bytes after `prefix`; a number outside the range for values without the prefix."""
    here = np.asarray(pc.starts_with(values, cast(str, prefix)))
    after = np.asarray(pc.greater(values, pa.scalar(prefix, pa.large_binary())))
    data, starts, stops = byte_spans(values)
    eight = Bytes(data, starts + starts.dtype.type(len(prefix)), stops - starts - len(prefix), 0, WORD_BITS)
    numbers = eight.read(Slot(0, 0, WORD_BITS), slice(None))
    return np.where(here, numbers.astype(np.float64), np.where(after, 2.0**WORD_BITS, 0.0))


def _among(known: Array, values: Array) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """How many of `known`, which ascend strictly, are smaller than each value, and whether it is one of them."""
    order, starts = ascending(pa.concat_arrays([known, values]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    known_ranks, ranks = rank[: len(known)], rank[len(known) :]
    return np.searchsorted(known_ranks, ranks), np.isin(ranks, known_ranks)


def _distinct(lows: Array, highs: Array) -> Array:
    values: Array = pa.concat_arrays([_plain(lows), _plain(highs)])
    order, starts = ascending(values)
    return values.take(order[starts])


def _shared(ascending_values: Array, first: int, last: int) -> bytes:
    """The prefix that all values from `first` to `last` share."""
    low, high = (bytes(ascending_values[int(place)].as_py()) for place in (first, last))
    shared = next((n for n, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    return low[:shared]


def _plain(values: Array) -> Array:
    return values.cast(pa.large_binary()).fill_null(b"")
