"""Ascending key columns -> where a key is among them. Keys are compared one at a time, in Paimon's order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.formats.paimon.metadata.binary_row import SortKey, sort_key
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.metadata.values import Value, canonical


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Ascending rows whose first columns are the key columns of `bucket`, without nulls. There may be more columns."""

    keys: pa.Table
    bucket: Bucket

    @property
    def types(self) -> tuple[PaimonType, ...]:
        schema = self.bucket.schemas.current
        return tuple(field.type for field in schema.select(schema.trimmed_keys))

    def key(self, row: int) -> SortKey:
        """The whole key of a row. A negative number counts from the end."""
        return self._leading(row if row >= 0 else self.keys.num_rows + row, self.types)

    def span(self, low: tuple[Value, ...], high: tuple[Value, ...]) -> slice:
        """Rows whose leading columns lie in [low, high]. Both have the first `len(low)` key values."""
        types = self.types[: len(low)]
        return self._between(sort_key(low, types), sort_key(high, types), types)

    def within(self, low: SortKey, high: SortKey) -> slice:
        """Rows whose whole key lies in [low, high]."""
        return self._between(low, high, self.types)

    def until(self, high: SortKey) -> int:
        """How many rows have a key of at most `high`."""
        types = self.types
        return bisect_right(range(self.keys.num_rows), high, key=lambda row: self._leading(row, types))

    def _between(self, low: SortKey, high: SortKey, types: tuple[PaimonType, ...]) -> slice:
        rows = range(self.keys.num_rows)
        start = bisect_left(rows, low, key=lambda row: self._leading(row, types))
        stop = bisect_right(rows, high, key=lambda row: self._leading(row, types))
        return slice(start, stop)

    def _leading(self, row: int, types: tuple[PaimonType, ...]) -> SortKey:
        values = [canonical(self.keys.column(i)[row], kind) for i, kind in enumerate(types)]
        return sort_key(values, types)
