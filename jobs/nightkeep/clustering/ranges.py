"""Rows -> keys along a curve. Ranges are cut by one sample, so every task computes the same key for a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.clustering.tuning import CHUNK_BYTES, NOISE_BITS, SORT_RANGE_IDS
from nightkeep.kernels.arrow_buffers import WORD_BITS, Rows, Words, leaf_values
from nightkeep.kernels.curve import curve_keys, order_of
from nightkeep.kernels.ranks import RangeBounds, Sample, ascending, bounds_of, noise, present_values, rank_ids
from nightkeep.model import Clustering
from nightkeep.model.arrow_types import ChunkedArray

Paths = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """How values of the columns at `paths` are cut into ranges, and the curve that numbers the ranges."""

    clustering: Clustering
    paths: Paths
    bounds: tuple[RangeBounds, ...]

    @classmethod
    def of(cls, clustering: Clustering, paths: Paths, samples: Sequence[tuple[pa.Table, int]]) -> Ranges:
        """Ranges from samples, each with the row count it stands for. Raises ValueError for a type without an order."""
        ids = max(clustering.range_ids, SORT_RANGE_IDS) if len(paths) == 1 else clustering.range_ids
        columns = [[Sample(leaf_values(rows, path), of) for rows, of in samples] for path in paths]
        return cls(clustering, paths, tuple(bounds_of(column, ids) for column in columns))

    def keys(self, rows: pa.Table, first_row: int) -> Words:
        """The key of each row along the curve. `first_row` is the number of the first row, used for noise."""
        ids = [rank_ids(bounds, leaf_values(rows, path)) for bounds, path in zip(self.bounds, self.paths, strict=True)]
        bits = self.bounds[0].bits
        keys = curve_keys(ids, bits, self.clustering.curve)
        # Keys that fill a word have hardly any ties.
        if self.clustering.noise and bits * len(ids) + NOISE_BITS <= WORD_BITS:
            keys = keys << np.uint64(NOISE_BITS) | noise(0, len(keys), first_row)
        return keys

    def order(self, rows: pa.Table, keys: Words) -> Rows:
        """The order of rows along the curve. For one column by value, nulls first, which is finer than ranges."""
        if len(self.paths) > 1 or self.clustering.noise:
            return order_of(keys)
        return _by_value(leaf_values(rows, self.paths[0]))

    @property
    def tops(self) -> Sequence[str]:
        """The top-level columns that order the rows of a bucket, beside their keys."""
        return () if len(self.paths) > 1 or self.clustering.noise else (self.paths[0][0],)

    def buckets(self, keys: Words, between: Words, first_row: int) -> npt.NDArray[np.int64]:
        """The bucket of each row."""
        return buckets_of(keys, between, first_row)


def in_order(rows: pa.Table, order: Rows) -> Iterator[pa.Table]:
    """`rows`, each column in one chunk, in this order, in tables of about CHUNK_BYTES."""
    if not len(order):
        return
    step = max(1, int(CHUNK_BYTES * rows.num_rows / max(1, rows.nbytes)))
    for start in range(0, len(order), step):
        yield rows.take(order[start : start + step])


def splitters(sample: Words, count: int) -> Words:
    """The `count` - 1 keys between `count` buckets of about equal rows, ascending; with skew some are equal."""
    ordered = np.sort(sample)
    return ordered[np.arange(1, count) * len(ordered) // count]


def buckets_of(keys: Words, between: Words, first_row: int) -> npt.NDArray[np.int64]:
    """The bucket of each row. If one key fills several buckets, its rows are dealt to them by row number."""
    lowest = np.searchsorted(between, keys, "left")
    highest = np.searchsorted(between, keys, "right")
    width = highest - lowest + 1
    if len(width) and int(width.max()) > 1:
        lowest = lowest + np.arange(first_row, first_row + len(keys)) % width
    return lowest


def _by_value(column: ChunkedArray) -> Rows:
    if not column.null_count:
        return ascending(present_values(column))[0]
    valid = pc.is_valid(column).to_numpy()
    order, _ = ascending(present_values(column))
    return np.concatenate([np.flatnonzero(~valid), np.flatnonzero(valid)[order]])
