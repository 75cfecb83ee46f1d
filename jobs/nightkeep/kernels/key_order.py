"""Key columns -> 64-bit words. Comparing two rows word by word is comparing their keys in Paimon's order.

Paimon's order: numbers and times by value, false < true, -0.0 < 0.0, every NaN equal and last, strings and
binary by unsigned bytes with a prefix first. Narrow columns share a word, so that most composite keys are
searched and sorted as one integer. A word is computed only for the rows asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array: TypeAlias = "pa.Array[Any]"
ChunkedArray: TypeAlias = "pa.ChunkedArray[Any]"
Rows = npt.NDArray[np.int64]
Integers = npt.NDArray[np.signedinteger[Any] | np.unsignedinteger[Any]]
Words = npt.NDArray[np.uint64]

WORD_BITS = 64
BYTE_BITS = 8
WORD_BYTES = WORD_BITS // BYTE_BITS
# Small enough that a block's temporaries stay in the second-level cache.
_BLOCK_ROWS = 32_768
# A place in a longer string than its row's own is start + place: below this, it cannot exceed 32 bits.
_NARROW_OFFSETS_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Slot:
    """Bits `start` to `start + bits` of a digit, counted from its most significant bit."""

    digit: int
    start: int
    bits: int


@dataclass(frozen=True, slots=True)
class EncodedKeys:
    """One key per item of `leading`, its first word; `words` says what every word is made of."""

    leading: Integers
    digits: tuple["_Integral | _Bytes", ...]
    words: tuple[tuple[Slot, ...], ...]

    def word(self, k: int, rows: Rows) -> Integers:
        """Word `k` of `rows`, in that order."""
        return self.leading[rows] if k == 0 else _word(self.digits, self.words[k], rows)


def encode(*tables: pa.Table) -> tuple[EncodedKeys, ...]:
    """Encode tables of key columns; words of one table compare with words of another.

    Each table holds exactly the key columns, in key order, with equal types and no nulls. Row order is free.
    Raises ValueError naming the column for nulls, differing types and types that cannot be a key.
    """
    digits: list[Sequence[_Integral | _Bytes]] = []
    for position, name in enumerate(tables[0].column_names):
        digits.extend(_digits(name, [table.column(position) for table in tables]))
    words = _layout([column[0] for column in digits])
    sides = [tuple(column[side] for column in digits) for side in range(len(tables))]
    return tuple(
        EncodedKeys(_leading(side, words[0], table.num_rows), side, words)
        for side, table in zip(sides, tables, strict=True)
    )


def require_ascending(keys: EncodedKeys, subject: str) -> None:
    """Raise ValueError naming `subject` and the row unless every key is greater than the one before."""
    before, after = keys.leading[:-1], keys.leading[1:]
    if bool((after > before).all()):
        return
    rows: Rows = np.arange(len(before))
    for k in range(len(keys.words)):
        if k > 0:
            before, after = keys.word(k, rows), keys.word(k, rows + 1)
        smaller = rows[after < before]
        if len(smaller):
            raise ValueError(f"{subject}: row {smaller[0] + 1} sorts before row {smaller[0]}, expected after")
        rows = rows[after == before]
    if len(rows):
        raise ValueError(f"{subject}: rows {rows[0]} and {rows[0] + 1} are equal, expected unique keys")


def _leading(digits: Sequence["_Integral | _Bytes"], slots: Sequence[Slot], rows: int) -> Integers:
    if len(slots) == 1 and isinstance(digit := digits[slots[0].digit], _Integral):
        return digit.values
    leading: Words = np.empty(rows, np.uint64)
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        leading[block] = _word(digits, slots, block)
    return leading


def _word(digits: Sequence["_Integral | _Bytes"], slots: Sequence[Slot], rows: Rows | slice) -> Words:
    word = digits[slots[0].digit].read(slots[0], rows)
    for slot in slots[1:]:
        word <<= np.uint64(slot.bits)
        word |= digits[slot.digit].read(slot, rows)
    return word


def _layout(digits: Sequence["_Integral | _Bytes"]) -> tuple[tuple[Slot, ...], ...]:
    words: list[list[Slot]] = [[]]
    free = WORD_BITS
    for position, digit in enumerate(digits):
        start = 0
        while start < digit.bits:
            taken = min(digit.bits - start, free - free % digit.granule_bits)
            if taken == 0:
                words.append([])
                free = WORD_BITS
                continue
            words[-1].append(Slot(position, start, taken))
            start += taken
            free -= taken
    return tuple(tuple(word) for word in words)


@dataclass(frozen=True, slots=True)
class _Integral:
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
class _Bytes:
    """A byte string per row: `lengths` bytes of `data` from `starts`, padded with zeros to `bits`."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    lengths: Integers
    shortest: int
    bits: int
    granule_bits: int = BYTE_BITS

    def read(self, slot: Slot, rows: Rows | slice) -> Words:
        first, count = slot.start // BYTE_BITS, slot.bits // BYTE_BITS
        word = self._word_at(self.starts[rows] + self.starts.dtype.type(first))
        if self.shortest < first + count:
            word &= _KEPT_BYTES[np.clip(self.lengths[rows] - first, 0, WORD_BYTES)]
        if count < WORD_BYTES:
            word >>= np.uint64(WORD_BITS - slot.bits)
        return word

    def _word_at(self, starts: Integers) -> Words:
        """Eight bytes big-endian from each start; what lies beyond the end of the data reads as zero."""
        last = len(self.data) - WORD_BYTES
        windows: Words = np.ndarray(last + 1, np.uint64, self.data, strides=(1,))
        late = np.flatnonzero(starts > last)
        if not len(late):
            return windows[starts].byteswap(inplace=True)
        word = windows[np.minimum(starts, last)].byteswap(inplace=True)
        beyond = np.minimum(starts[late] - last, WORD_BYTES).astype(np.uint64)
        # Two shifts, because a shift by the whole word is undefined.
        half = beyond * np.uint64(BYTE_BITS // 2)
        word[late] = word[late] << half << half
        return word


# Entry n keeps the first n bytes of a big-endian word.
_KEPT_BYTES: Words = np.array(
    [2**WORD_BITS - 2 ** (WORD_BITS - BYTE_BITS * kept) for kept in range(WORD_BYTES + 1)], np.uint64
)


def _digits(name: str, columns: Sequence[ChunkedArray]) -> Iterator[Sequence[_Integral | _Bytes]]:
    """The digits of one key column, most significant first; each has one item per table."""
    kind = columns[0].type
    for column in columns:
        if column.type != kind:
            raise ValueError(f"key column {name!r}: type {column.type}, expected {kind}")
        if column.null_count:
            raise ValueError(f"key column {name!r}: {column.null_count} nulls, expected none")
    sides = [_one_array(column) for column in columns]
    if _is_bytes(sides[0].type):
        yield from _byte_digits(sides)
    elif pa.types.is_decimal128(kind):
        yield from _decimal_digits(sides)
    elif pa.types.is_primitive(kind):
        yield _integral([_ordered_integers(side) for side in sides])
    else:
        raise ValueError(f"key column {name!r}: type {kind}, expected a number, time, string or binary")


def _one_array(column: ChunkedArray) -> Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_bytes(column.type):
        # 64-bit offsets: the chunks together may hold more than 2 GiB. The bytes are not copied.
        plain = column.num_chunks == 1 and column.type in (pa.string(), pa.binary())
        column = column if plain else column.cast(pa.large_binary())
    if column.num_chunks == 1:
        return cast(Array, column.chunk(0))
    return cast(Array, pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _integral(sides: Sequence[Integers]) -> tuple[_Integral, ...]:
    filled = [side for side in sides if len(side)]
    low = min((int(side.min()) for side in filled), default=0)
    high = max((int(side.max()) for side in filled), default=0)
    bits = max(1, (high - low).bit_length())
    return tuple(_Integral(side, low, bits) for side in sides)


def _ordered_integers(array: Array) -> Integers:
    if pa.types.is_boolean(array.type):
        return cast(Integers, array.cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(array.type):
        return _ordered_floats(array.to_numpy())
    if pa.types.is_integer(array.type):
        return cast(Integers, array.to_numpy())
    return cast(Integers, array.view({32: pa.int32(), 64: pa.int64()}[array.type.bit_width]).to_numpy())


def _ordered_floats(values: npt.NDArray[np.floating[Any]]) -> Integers:
    signed = np.dtype(f"i{values.itemsize}")
    bits: npt.NDArray[np.signedinteger[Any]] = values.view(signed)
    negative = bits >> signed.type(BYTE_BITS * values.itemsize - 1)
    ordered: Integers = bits ^ (negative & signed.type(np.iinfo(signed).max))
    ordered[np.isnan(values)] = np.iinfo(signed).max
    return ordered


def _decimal_digits(sides: Sequence[Array]) -> Iterator[Sequence[_Integral]]:
    lows, highs = [], []
    for side in sides:
        limbs = _values(side, 1, np.dtype("<i8")).reshape(-1, 2)[side.offset : side.offset + len(side)]
        lows.append(np.ascontiguousarray(limbs[:, 0]))
        highs.append(limbs[:, 1])
    if all(np.array_equal(low >> 63, high) for low, high in zip(lows, highs, strict=True)):
        yield _integral(lows)
    else:
        yield _integral(highs)
        yield _integral([low.view(np.uint64) for low in lows])


def _byte_digits(sides: Sequence[Array]) -> Iterator[Sequence[_Integral | _Bytes]]:
    prefix = len(_shared_prefix(sides))
    spans = [_spans(side) for side in sides]
    lengths = [stops - starts - starts.dtype.type(prefix) for _, starts, stops in spans]
    shortest = min((int(each.min()) for each in lengths if len(each)), default=0)
    longest = max((int(each.max()) for each in lengths if len(each)), default=0)
    yield [
        _Bytes(data, starts + starts.dtype.type(prefix), each, shortest, max(1, longest) * BYTE_BITS)
        for (data, starts, _), each in zip(spans, lengths, strict=True)
    ]
    # Zeros that pad a short key are told from zeros that belong to a long one by length, when there are any.
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


def _spans(array: Array) -> tuple[npt.NDArray[np.uint8], Integers, Integers]:
    """The bytes, at least one word of them, and where each row starts and stops in them."""
    wide = pa.types.is_large_binary(array.type)
    offsets = _values(array, 1, np.dtype("<i8" if wide else "<i4"))[
        array.offset : array.offset + len(array) + 1
    ]
    data = _values(array, 2, np.dtype(np.uint8))
    if len(data) < WORD_BYTES:
        data = np.concatenate([data, np.zeros(WORD_BYTES, np.uint8)])
    if len(data) > _NARROW_OFFSETS_BYTES:
        offsets = offsets.astype(np.int64)
    return data, offsets[:-1], offsets[1:]


def _has_zero(data: npt.NDArray[np.uint8], starts: Integers, stops: Integers) -> bool:
    used = data[starts[0] : stops[-1]] if len(starts) else data[:0]
    return len(used) > 0 and bool(used.min() == 0)


def _values(array: Array, position: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    buffer = array.buffers()[position]
    if buffer is None:
        return np.zeros(0, kind)
    return np.frombuffer(memoryview(buffer), kind, buffer.size // kind.itemsize)
