"""Scalars of variants -> what their hash is of: equal for equal values, however encoded.

A payload is a kind, three words and a text. Kinds are the equivalence classes of Parquet's "Variant Binary Encoding":
whole numbers and decimals of all widths and scales are one kind, float and double are two, and so are times with and
without a zone, each in micros and nanos. Floats are their bits: -0.0 differs from 0.0, and one NaN from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import BYTE_BITS, WORD_BYTES, Words, buffer_values, words_at
from nightkeep.model.arrow_types import Array

Bytes = npt.NDArray[np.uint8]
Kinds = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NULL, BOOLEAN, EXACT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, STRING, TIME, UUID, OBJECT, ARRAY = range(
    14
)
"""Kinds of values. A null variant is a value."""
MAX_SCALE: Final = 38

_WORD_MASKS: Final = np.array([(1 << BYTE_BITS * width) - 1 for width in range(WORD_BYTES + 1)], np.uint64)
_INLINE_BYTES, _PREFIX_BYTES, _VIEW_WORDS = 12, 4, 2
_NANOS: Final = 1000


@dataclass(frozen=True, slots=True)
class Payloads:
    """Values as kinds, words and texts: one entry per value in each array.

    A number is `low` and `high`, in two's complement, with its scale as `count`. An object or array has the number of
    its values as `count`, and the sums of their hashes as `low` and `high`. `texts` has views of texts and bytes, null
    for other kinds.
    """

    kinds: Kinds
    counts: Words
    low: Words
    high: Words
    texts: Array

    @staticmethod
    def of(kind: int, rows: int) -> Payloads:
        """Payloads of zeros."""
        counts, low, high = (np.zeros(rows, np.uint64) for _ in range(3))
        return Payloads(np.full(rows, kind, np.uint8), counts, low, high, pa.nulls(rows, pa.binary_view()))


def normalise_exact(payloads: Payloads) -> None:
    """Set numbers in place to the least scale that keeps them: 1.50 is 1.5, and 2.0 is 2."""
    at = np.flatnonzero((payloads.kinds == EXACT) & (payloads.counts > 0))
    if not len(at):
        return
    negative = payloads.high[at] >> np.uint64(63) == 1
    low, high = _negated(payloads.low[at], payloads.high[at], negative)
    scales = payloads.counts[at]
    left = np.arange(len(at))
    while len(left):
        shorter = _tenth(low[left], high[left])
        exact = shorter[2]
        left = left[exact]
        low[left], high[left] = shorter[0][exact], shorter[1][exact]
        scales[left] -= np.uint64(1)
        left = left[scales[left] > 0]
    payloads.low[at], payloads.high[at] = _negated(low, high, negative)
    payloads.counts[at] = scales


def normalise_nanos(payloads: Payloads, at: Numbers) -> None:
    """Set the nanoseconds at these places to microseconds where that is exact, else mark them by a count of 1."""
    nanos = payloads.low[at].view(np.int64)
    whole = nanos % _NANOS == 0
    payloads.low[at] = np.where(whole, nanos // _NANOS, nanos).view(np.uint64)
    payloads.counts[at] = ~whole


def byte_views(data: Bytes, starts: Numbers, lengths: Numbers, rows: Numbers, of: int) -> Array:
    """A column of `of` rows: views of `data` at `rows`, null elsewhere. Only texts of up to 12 bytes are copied.

    `data` has at least one word, and less than 2 GiB.
    """
    views = np.zeros((of, _VIEW_WORDS), np.uint64)
    is_held = np.zeros(of, np.bool_)
    is_held[rows] = True
    sizes = lengths.astype(np.uint64)
    head = words_at(data, starts) & _WORD_MASKS[np.minimum(lengths, _PREFIX_BYTES)]
    tail = words_at(data, starts + _PREFIX_BYTES) & _WORD_MASKS[np.clip(lengths - _PREFIX_BYTES, 0, WORD_BYTES)]
    views[rows, 0] = sizes | head << np.uint64(32)
    views[rows, 1] = np.where(lengths <= _INLINE_BYTES, tail, starts.astype(np.uint64) << np.uint64(32))
    is_valid = np.packbits(is_held, bitorder="little")
    buffers = [pa.py_buffer(part.data) for part in (is_valid, views, data)]
    return pa.Array.from_buffers(pa.binary_view(), of, [*buffers], of - len(rows))


def typed_payloads(column: Array) -> Payloads:
    """The payloads of a typed column of a shredded variant; those of nulls have no meaning.

    Raises ValueError for a type that no variant is shredded into.
    """
    kind, rows = column.type, len(column)
    payloads = Payloads.of(_kind_of(kind), rows)
    if payloads.kinds.size == 0:
        return payloads
    if _is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        texts = column.cast(pa.binary() if kind == pa.string() else pa.large_binary() if _is_text(kind) else kind)
        return Payloads(payloads.kinds, payloads.counts, payloads.low, payloads.high, texts.cast(pa.binary_view()))
    if pa.types.is_fixed_size_binary(kind):
        _set_uuids(payloads, column)
    elif pa.types.is_decimal(kind):
        _set_decimals(payloads, column)
    else:
        payloads.low[:] = _words(column)
        if payloads.kinds[0] == EXACT:
            payloads.high[:] = _signs(payloads.low)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        normalise_nanos(payloads, np.arange(rows))
    return payloads


def _kind_of(kind: pa.DataType) -> int:
    if pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    if pa.types.is_decimal(kind) and kind.bit_width <= 128:
        return EXACT
    if _is_text(kind):
        return STRING
    known = _KINDS.get(kind)
    if known is None:
        raise ValueError(f"a variant shredded into {kind}, expected a type of variants")
    return known


_KINDS: Final = {
    pa.bool_(): BOOLEAN,
    pa.int8(): EXACT,
    pa.int16(): EXACT,
    pa.int32(): EXACT,
    pa.int64(): EXACT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.date32(): DATE,
    pa.time64("us"): TIME,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.binary(16): UUID,
}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _words(column: Array) -> Words:
    """The values of a column of numbers or times, as words: numbers with their sign, floats as their bits."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    width = column.type.bit_width // BYTE_BITS
    code = "u" if pa.types.is_floating(column.type) or pa.types.is_uint8(column.type) else "i"
    held = buffer_values(column, 1, np.dtype(f"<{code}{width}"))[column.offset : column.offset + len(column)]
    return held.astype(np.int64 if code == "i" else np.uint64).view(np.uint64)


def _set_decimals(payloads: Payloads, column: Array) -> None:
    scale = column.type.scale
    if not 0 <= scale <= MAX_SCALE:
        raise ValueError(f"a variant shredded into {column.type}, expected a scale from 0 to {MAX_SCALE}")
    wide = column.cast(pa.decimal128(38, scale))
    words = buffer_values(wide, 1, np.dtype("<u8")).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
    payloads.low[:], payloads.high[:] = words.T
    payloads.counts[:] = scale
    normalise_exact(payloads)


def _set_uuids(payloads: Payloads, column: Array) -> None:
    words = buffer_values(column, 1, np.dtype("<u8")).reshape(-1, 2)[column.offset : column.offset + len(column)]
    payloads.low[:], payloads.high[:] = words.T


def _signs(words: Words) -> Words:
    return (words.view(np.int64) >> 63).view(np.uint64)


def _negated(low: Words, high: Words, where: Flags) -> tuple[Words, Words]:
    """Numbers of two words, negated where the flag is set."""
    minus_low = ~low + np.uint64(1)
    minus_high = ~high + (minus_low == 0)
    return np.where(where, minus_low, low), np.where(where, minus_high, high)


def _tenth(low: Words, high: Words) -> tuple[Words, Words, Flags]:
    """Each number of two words divided by ten, and whether that is exact."""
    half, ten = np.uint64(32), np.uint64(10)
    mask = np.uint64(0xFFFFFFFF)
    rest = np.zeros(len(low), np.uint64)
    digits = []
    for digit in (high >> half, high & mask, low >> half, low & mask):
        whole = rest << half | digit
        digits.append(whole // ten)
        rest = whole % ten
    return digits[2] << half | digits[3], digits[0] << half | digits[1], rest == 0
