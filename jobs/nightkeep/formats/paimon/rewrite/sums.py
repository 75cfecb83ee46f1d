"""Numbers of one column -> a sum per key, in the arithmetic of the column's type as Java has it.

Whole numbers are exact and raise beyond their type; a decimal beyond its precision becomes null; floating numbers are
added in order. Source: C/mergetree/compact/aggregate/FieldSumAgg.java of Paimon 2.0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.merge_engine import LONG_DIGITS
from nightkeep.kernels.arrow_buffers import Rows, buffer_values
from nightkeep.model.arrow_types import Array, ChunkedArray

Numbers = npt.NDArray[Any]
"""Of the column's own width; decimals without their point, as 64-bit numbers."""


class Sums:
    """The sum of each key; null until the first number. `column` may have nulls, which are never added."""

    def __init__(self, name: str, column: ChunkedArray, keys: int) -> None:
        self._name, self._type = name, column.type
        self._numbers = _numbers(column)
        self._held = np.zeros(keys, self._numbers.dtype)
        self._any = np.zeros(keys, np.bool_)

    def add(self, keys: Rows, rows: Rows) -> None:
        self._take(keys, self._numbers[rows])

    def subtract(self, keys: Rows, rows: Rows) -> None:
        numbers = self._numbers[rows]
        least = None if numbers.dtype.kind == "f" else np.iinfo(numbers.dtype).min
        if least is not None and bool((numbers == least).any()):
            raise OverflowError(f"column {self._name}: the negative of {least} is beyond {self._type}")
        self._take(keys, -numbers)

    def clear(self, keys: Rows) -> None:
        self._any[keys], self._held[keys] = False, 0

    def values(self, keys: Rows) -> ChunkedArray:
        held, none = self._held[keys], ~self._any[keys]
        if not pa.types.is_decimal(self._type):
            return pa.chunked_array([pa.array(held, self._type, mask=none)])
        return pa.chunked_array([_decimals(held, none, self._type)])

    def _take(self, keys: Rows, numbers: Numbers) -> None:
        before = self._held[keys]
        # The first number is taken as it is: 0.0 + -0.0 would lose its sign.
        with np.errstate(over="ignore", invalid="ignore"):
            after = np.where(self._any[keys], before + numbers, numbers).astype(before.dtype)
        beyond = self._beyond(before, numbers, after) & self._any[keys]
        self._held[keys], self._any[keys] = after, True
        if bool(beyond.any()):
            self._overflow(keys[beyond])

    def _beyond(self, before: Numbers, numbers: Numbers, after: Numbers) -> npt.NDArray[np.bool_]:
        if after.dtype.kind == "f":
            return np.zeros(len(after), np.bool_)
        if pa.types.is_decimal(self._type):
            outside: npt.NDArray[np.bool_] = np.abs(after) >= 10**self._type.precision
            return outside
        # The sum of two numbers of one sign has another sign.
        wrapped: npt.NDArray[np.bool_] = ((before ^ after) & (numbers ^ after)) < 0
        return wrapped

    def _overflow(self, keys: Rows) -> None:
        if not pa.types.is_decimal(self._type):
            raise OverflowError(f"column {self._name}: a sum is beyond {self._type}")
        self.clear(keys)


def _numbers(column: ChunkedArray) -> Numbers:
    if not pa.types.is_decimal(column.type):
        filled: ChunkedArray = pc.fill_null(column, pa.scalar(0, column.type))
        return filled.to_numpy()
    if column.type.precision > LONG_DIGITS:
        raise ValueError(f"expected a decimal of at most {LONG_DIGITS} digits, found {column.type}")
    # The low half of a 128-bit number is its value, as it fits into 64 bits.
    whole: Array = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
    words = buffer_values(whole, 1, np.dtype(np.int64))
    low: npt.NDArray[np.int64] = words[2 * whole.offset : 2 * (whole.offset + len(whole)) : 2].copy()
    low[np.asarray(whole.is_null())] = 0
    return low


def _decimals(held: Numbers, none: npt.NDArray[np.bool_], kind: pa.DataType) -> Array:
    words = np.empty((len(held), 2), np.int64)
    words[:, 0] = held
    words[:, 1] = held.astype(np.int64) >> 63
    bits = pa.array(~none).buffers()[1]
    return pa.Array.from_buffers(kind, len(held), [bits, pa.py_buffer(words.tobytes())])
