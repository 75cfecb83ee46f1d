"""Rows -> places in a table's own sort order. Keys of one sample cut the rows, so every task computes the same places.

Invariant: of two rows in different buckets, the one in the lower bucket does not sort after the other. Rows between two
keys of the sample are never divided, as nobody knows their order before they are sorted. Rows that equal a key of the
sample are interchangeable, and are dealt to all buckets that the key fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.clustering.ranges import buckets_of
from nightkeep.clustering.tuning import SORT_RANGE_IDS
from nightkeep.kernels.arrow_buffers import Rows, Words
from nightkeep.kernels.sort_keys import distinct_keys, keys_among, sorted_rows

_ONE = np.uint64(1)


class KeyedOrder(Protocol):
    """A sort order of rows. Pickles."""

    @property
    def tops(self) -> Sequence[str]:
        """The top-level columns that `keys` needs."""

    def keys(self, rows: pa.Table) -> pa.Table:
        """The keys of rows, as `kernels.sort_keys` makes them."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderRanges:
    """The order, and the keys that cut its rows: distinct and ascending."""

    row_order: KeyedOrder
    bounds: pa.Table

    @classmethod
    def of(cls, order: KeyedOrder, samples: Sequence[pa.Table]) -> OrderRanges:
        return cls(order, distinct_keys(order.keys(pa.concat_tables(samples)), SORT_RANGE_IDS))

    @property
    def tops(self) -> Sequence[str]:
        return self.row_order.tops

    def keys(self, rows: pa.Table, first_row: int) -> Words:
        """The place of each row among the bounds; odd for rows that equal one."""
        return keys_among(self.bounds, self.row_order.keys(rows))

    def order(self, rows: pa.Table, keys: Words) -> Rows:
        return sorted_rows(self.row_order.keys(rows))

    def buckets(self, keys: Words, between: Words, first_row: int) -> npt.NDArray[np.int64]:
        """The bucket of each row."""
        lowest = np.searchsorted(between, keys, "left").astype(np.int64)
        return np.where(keys & _ONE, buckets_of(keys, between, first_row), lowest)
