"""A key column -> digits: unsigned numbers, or strings of bytes, that order rows as the column does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import (
    BYTE_BITS,
    WORD_BITS,
    WORD_BYTES,
    Integers,
    Rows,
    Words,
    buffer_values,
    byte_spans,
    is_bytes,
    one_array,
    words_at,
)
from nightkeep.model.arrow_types import Array, ChunkedArray


@dataclass(frozen=True, slots=True)
class Slot:
    """Bits `start` to `start + bits` of a digit, counted from its most significant bit."""

    digit: int
    start: int
    bits: int


@dataclass(frozen=True, slots=True)
class Integral:
    """An integer per row, never below `low`; `values - low` fits `bits`."""

    values: Integers
    low: int
    bits: int

    @property
    def granule_bits(self) -> int:
        return self.bits

    def read(self, slot: Slot, rows: Rows | slice) -> Words:
        wide = self.values[rows].astype(np.uint64)
        wide -= np.uint64(self.low % 2**WORD_BITS)
        return wide


@dataclass(frozen=True, slots=True)
class Bytes:
    """A byte string per row: `lengths` bytes of `data` from `starts`, padded with zeros to `bits`."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    lengths: Integers
    shortest: int
    bits: int
    granule_bits: int = BYTE_BITS

    def read(self, slot: Slot, rows: Rows | slice) -> Words:
        first, count = slot.start // BYTE_BITS, slot.bits // BYTE_BITS
        word = words_at(self.data, self.starts[rows] + self.starts.dtype.type(first)).byteswap(inplace=True)
        if self.shortest < first + count:
            word &= _KEPT_BYTES[np.clip(self.lengths[rows] - first, 0, WORD_BYTES)]
        if count < WORD_BYTES:
            word >>= np.uint64(WORD_BITS - slot.bits)
        return word


Digit = Integral | Bytes
# Entry n keeps the first n bytes of a big-endian word.
_KEPT_BYTES: Words = np.array(
    [2**WORD_BITS - 2 ** (WORD_BITS - BYTE_BITS * kept) for kept in range(WORD_BYTES + 1)], np.uint64
)


def digits_of(name: str, columns: Sequence[ChunkedArray]) -> Iterator[Sequence[Digit]]:
    """The digits of one key column, most significant first; each has one item per table."""
    kind = columns[0].type
    for column in columns:
        if column.type != kind:
            raise ValueError(f"key column {name!r}: type {column.type}, expected {kind}")
        if column.null_count:
            raise ValueError(f"key column {name!r}: {column.null_count} nulls, expected none")
    sides = [one_array(column) for column in columns]
    if is_bytes(sides[0].type):
        yield from _byte_digits(sides)
    elif pa.types.is_decimal128(kind):
        yield from _decimal_digits(sides)
    elif pa.types.is_primitive(kind):
        yield _integral([_ordered_integers(side) for side in sides])
    else:
        raise ValueError(f"key column {name!r}: type {kind}, expected a number, time, string or binary")


def _integral(sides: Sequence[Integers]) -> tuple[Integral, ...]:
    filled = [side for side in sides if len(side)]
    low = min((int(side.min()) for side in filled), default=0)
    high = max((int(side.max()) for side in filled), default=0)
    bits = max(1, (high - low).bit_length())
    return tuple(Integral(side, low, bits) for side in sides)


def _ordered_integers(array: Array) -> Integers:
    if pa.types.is_boolean(array.type):
        return cast(Integers, array.cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(array.type):
        return ordered_floats(array.to_numpy())
    if pa.types.is_integer(array.type):
        return cast(Integers, array.to_numpy())
    return cast(Integers, array.view({32: pa.int32(), 64: pa.int64()}[array.type.bit_width]).to_numpy())


def ordered_floats(values: npt.NDArray[np.floating]) -> Integers:
    """Integers of as many bits that order floats: -0.0 before 0.0, every NaN equal and greatest."""
    signed = np.dtype(f"i{values.itemsize}")
    bits: npt.NDArray[np.signedinteger] = values.view(signed)
    negative = bits >> signed.type(BYTE_BITS * values.itemsize - 1)
    ordered: Integers = bits ^ (negative & signed.type(np.iinfo(signed).max))
    ordered[np.isnan(values)] = np.iinfo(signed).max
    return ordered


def _decimal_digits(sides: Sequence[Array]) -> Iterator[Sequence[Integral]]:
    lows, highs = [], []
    for side in sides:
        limbs = buffer_values(side, 1, np.dtype("<i8")).reshape(-1, 2)[side.offset : side.offset + len(side)]
        lows.append(np.ascontiguousarray(limbs[:, 0]))
        highs.append(limbs[:, 1])
    if all(np.array_equal(low >> 63, high) for low, high in zip(lows, highs, strict=True)):
        yield _integral(lows)
    else:
        yield _integral(highs)
        yield _integral([low.view(np.uint64) for low in lows])


def _byte_digits(sides: Sequence[Array]) -> Iterator[Sequence[Digit]]:
    prefix = len(_shared_prefix(sides))
    spans = [byte_spans(side) for side in sides]
    lengths = [stops - starts - starts.dtype.type(prefix) for _, starts, stops in spans]
    shortest = min((int(each.min()) for each in lengths if len(each)), default=0)
    longest = max((int(each.max()) for each in lengths if len(each)), default=0)
    yield [
        Bytes(data, starts + starts.dtype.type(prefix), each, shortest, max(1, longest) * BYTE_BITS)
        for (data, starts, _), each in zip(spans, lengths, strict=True)
    ]
    # Zeros that pad a short key differ from zeros that belong to a long one by length, when there are any.
    if shortest != longest and any(_has_zero(*span) for span in spans):
        yield _integral(lengths)


def _shared_prefix(sides: Sequence[Array]) -> bytes:
    """Bytes that every key starts with: guessed from the ends of each side, then tested on all rows."""
    ends = [row.as_buffer().to_pybytes() for side in sides if len(side) for row in (side[0], side[-1])]
    low, high = min(ends, default=b""), max(ends, default=b"")
    shared = next((n for n, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), len(low))
    guess = low[:shared]
    shared_by_all = all(pc.all(pc.starts_with(side, cast(str, guess))).as_py() is not False for side in sides)
    return guess if shared_by_all else b""


def _has_zero(data: npt.NDArray[np.uint8], starts: Integers, stops: Integers) -> bool:
    used = data[starts[0] : stops[-1]] if len(starts) else data[:0]
    return len(used) > 0 and bool(used.min() == 0)
