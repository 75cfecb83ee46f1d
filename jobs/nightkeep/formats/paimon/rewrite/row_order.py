"""Columns -> the order of their rows, two rows at a time, without a sort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Integers, Rows
from nightkeep.kernels.key_order import EncodedKeys, encode
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import ChunkedArray

Signs = npt.NDArray[np.int8]
"""-1, 0 or 1 per pair of rows: the first is less, equal or greater."""


class RowOrder:
    """Rows compare column by column, null first, values in Paimon's order of keys (nightkeep.kernels.key_order).

    Source: UserDefinedSeqComparator of Paimon 2.0.0 with its generated comparators.
    """

    def __init__(self, columns: Sequence[ChunkedArray]) -> None:
        self._columns = [_Encoded(column) for column in columns]
        self._any: Flags = np.logical_or.reduce([column.valid for column in self._columns])

    def is_null(self, rows: Rows) -> Flags:
        """Whether every column of a row is null."""
        return ~self._any[rows]

    def compare(self, rows: Rows, others: Rows) -> Signs:
        signs: Signs = np.zeros(len(rows), np.int8)
        open_pairs = np.arange(len(rows))
        for column in self._columns:
            for step in range(column.steps):
                if not len(open_pairs):
                    return signs
                one, other = column.step(step, rows[open_pairs]), column.step(step, others[open_pairs])
                found = (one > other).astype(np.int8) - (one < other).astype(np.int8)
                signs[open_pairs] = found
                open_pairs = open_pairs[found == 0]
        return signs


class _Encoded:
    """A column as numbers that compare one after the other: whether there is a value, and the words of the value."""

    def __init__(self, column: ChunkedArray) -> None:
        self.valid: Flags = pc.is_valid(column).to_numpy()
        self._words: EncodedKeys | None = None
        if self.valid.any():
            filled = pc.fill_null(column, column.drop_null()[0]) if column.null_count else column
            (self._words,) = encode(pa.table({"value": filled}))
        self.steps = 1 + (len(self._words.words) if self._words else 0)

    def step(self, number: int, rows: Rows) -> Integers:
        if number == 0:
            return self.valid[rows].astype(np.int8)
        assert self._words is not None
        return self._words.word(number - 1, rows)
