"""Numbers of one column -> a sum or a product per key, in the arithmetic of the column's type as Java has it.

Whole numbers are exact and raise beyond their type; a decimal beyond its precision becomes null; floating numbers are
combined in order. Source: FieldSumAgg and FieldProductAgg of Paimon 2.0.0 (C/mergetree/compact/aggregate).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.metadata.merge_engine import LONG_DIGITS
from nightkeep.kernels.arrow_buffers import Rows, buffer_values
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, ChunkedArray

Numbers = npt.NDArray[Any]
"""Of the column's own width; decimals without their point, as 64-bit numbers."""
_WIDEST = np.iinfo(np.int64)


class ColumnTotals:
    """The sum or the product of each key; null until the first number. `column` may have nulls: rows that hold one are
    never given."""

    def __init__(self, name: str, column: ChunkedArray, keys: int) -> None:
        self._name, self._type = name, column.type
        self._numbers = _numbers(column)
        self._held = np.zeros(keys, self._numbers.dtype)
        self._any = np.zeros(keys, np.bool_)

    def add(self, keys: Rows, rows: Rows) -> None:
        self._add(keys, self._numbers[rows])

    def subtract(self, keys: Rows, rows: Rows) -> None:
        """Raises OverflowError for the negative of the least number of the type."""
        numbers = self._numbers[rows]
        least = None if numbers.dtype.kind == "f" else np.iinfo(numbers.dtype).min
        if least is not None and bool((numbers == least).any()):
            raise OverflowError(f"column {self._name}: the negative of {least} is beyond {self._type}")
        self._add(keys, -numbers)

    def multiply(self, keys: Rows, rows: Rows) -> None:
        fresh = ~self._any[keys]
        self._held[keys[fresh]], self._any[keys[fresh]] = self._numbers[rows[fresh]], True
        keys, numbers = keys[~fresh], self._numbers[rows[~fresh]]
        before = self._held[keys]
        if pa.types.is_decimal(self._type):
            after, beyond = _decimal_product(before, numbers, self._type)
        else:
            after, beyond = _product(before, numbers)
        self._hold(keys, after, beyond)

    def divide(self, keys: Rows, rows: Rows) -> None:
        """Keys without a number stay without. Raises ValueError for decimals and for zeros of whole numbers."""
        held = self._any[keys]
        keys, numbers = keys[held], self._numbers[rows[held]]
        if pa.types.is_decimal(self._type) and len(keys):
            raise ValueError(f"expected no retract in the product of decimals {self._name}, found one")
        if numbers.dtype.kind != "f" and not numbers.all():
            raise ValueError(f"expected no retract of 0 in the product {self._name}, found one")
        after, beyond = _quotient(self._held[keys], numbers)
        self._hold(keys, after, beyond)

    def clear(self, keys: Rows) -> None:
        self._any[keys], self._held[keys] = False, 0

    def values(self, keys: Rows) -> ChunkedArray:
        held, none = self._held[keys], ~self._any[keys]
        if not pa.types.is_decimal(self._type):
            return pa.chunked_array([pa.array(held, self._type, mask=none)])
        return pa.chunked_array([_decimals(held, none, self._type)])

    def _add(self, keys: Rows, numbers: Numbers) -> None:
        before = self._held[keys]
        # The first number is taken as it is: 0.0 + -0.0 would lose its sign.
        with np.errstate(over="ignore", invalid="ignore"):
            after = np.where(self._any[keys], before + numbers, numbers).astype(before.dtype)
        self._hold(keys, after, self._beyond(before, numbers, after) & self._any[keys])

    def _beyond(self, before: Numbers, numbers: Numbers, after: Numbers) -> Flags:
        if after.dtype.kind == "f":
            return np.zeros(len(after), np.bool_)
        if pa.types.is_decimal(self._type):
            outside: Flags = np.abs(after) >= 10**self._type.precision
            return outside
        # The sum of two numbers of one sign has another sign.
        wrapped: Flags = ((before ^ after) & (numbers ^ after)) < 0
        return wrapped

    def _hold(self, keys: Rows, after: Numbers, beyond: Flags) -> None:
        self._held[keys], self._any[keys] = after, True
        if not bool(beyond.any()):
            return
        if not pa.types.is_decimal(self._type):
            raise OverflowError(f"column {self._name}: the result is beyond {self._type}")
        self.clear(keys[beyond])


def _product(before: Numbers, numbers: Numbers) -> tuple[Numbers, Flags]:
    with np.errstate(over="ignore", invalid="ignore"):
        if before.dtype.kind == "f":
            return before * numbers, np.zeros(len(before), np.bool_)
        wide = before.astype(np.int64) * numbers.astype(np.int64)
    after = wide.astype(before.dtype)
    divisor = np.where(numbers == 0, 1, numbers).astype(np.int64)
    # The least number times -1 wraps to itself, and divided by -1 again.
    least = (before == _WIDEST.min) & (numbers == -1) | (numbers == _WIDEST.min) & (before == -1)
    with np.errstate(over="ignore"):
        wrapped = (numbers != 0) & (wide // divisor != before)
    return after, (after != wide) | wrapped | least


def _quotient(before: Numbers, numbers: Numbers) -> tuple[Numbers, Flags]:
    """Rounded to zero, as Java does."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if before.dtype.kind == "f":
            return before / numbers, np.zeros(len(before), np.bool_)
        down = before // numbers
        after = down + ((before % numbers != 0) & ((before < 0) != (numbers < 0))).astype(before.dtype)
    return after, (before == np.iinfo(before.dtype).min) & (numbers == -1)


def _decimal_product(before: Numbers, numbers: Numbers, kind: Any) -> tuple[Numbers, Flags]:
    """Rounded half up to the scale of `kind`, and whether the result is beyond its digits."""
    valid = np.zeros(len(before), np.bool_)
    exact: Array = pc.multiply(_decimals(before, valid, kind), _decimals(numbers, valid, kind))
    rounded: Array = pc.round(exact, ndigits=kind.scale, round_mode="half_towards_infinity")
    whole: Array = rounded.cast(pa.decimal128(38, kind.scale))
    limit = pa.scalar(10 ** (kind.precision - kind.scale), pa.decimal128(20, 0)).cast(whole.type)
    beyond: Flags = np.asarray(pc.greater_equal(pc.abs(whole), limit))
    kept: Array = pc.if_else(pa.array(beyond), pa.scalar(0, pa.decimal128(38, 0)).cast(whole.type), whole)
    return _low_words(kept), beyond


def _numbers(column: ChunkedArray) -> Numbers:
    if not pa.types.is_decimal(column.type):
        filled: ChunkedArray = pc.fill_null(column, pa.scalar(0, column.type))
        return filled.to_numpy()
    if column.type.precision > LONG_DIGITS:
        raise ValueError(f"expected a decimal of at most {LONG_DIGITS} digits, found {column.type}")
    whole: Array = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
    low = _low_words(whole)
    low[np.asarray(whole.is_null())] = 0
    return low


def _low_words(decimals: Array) -> Numbers:
    """The low half of each 128-bit number, which is its value where that fits into 64 bits."""
    words = buffer_values(decimals, 1, np.dtype(np.int64))
    low: npt.NDArray[np.int64] = words[2 * decimals.offset : 2 * (decimals.offset + len(decimals)) : 2].copy()
    return low


def _decimals(held: Numbers, none: Flags, kind: pa.DataType) -> Array:
    words = np.empty((len(held), 2), np.int64)
    words[:, 0] = held
    words[:, 1] = held.astype(np.int64) >> 63
    bits = pa.array(~none).buffers()[1]
    return pa.Array.from_buffers(kind, len(held), [bits, pa.py_buffer(words.tobytes())])
