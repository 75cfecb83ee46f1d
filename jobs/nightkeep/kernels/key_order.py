"""Key columns -> 64-bit words. Comparing rows word by word gives the order of their keys in Paimon.

Paimon's order: numbers and times by value, false < true, -0.0 < 0.0, every NaN equal and last, strings and
binary by unsigned bytes with a prefix first. Narrow columns share a word, so that most composite keys are
searched and sorted as one integer. A word is computed only for the rows asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import WORD_BITS, Integers, Rows, Words
from nightkeep.kernels.key_digits import Digit, Integral, Slot, digits_of

# Small enough that a block's temporaries stay in the second-level cache.
_BLOCK_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class EncodedKeys:
    """Encoded keys. `leading` has the first word of each key; `words` has the slots that make up every word."""

    leading: Integers
    digits: tuple[Digit, ...]
    words: tuple[tuple[Slot, ...], ...]

    def word(self, k: int, rows: Rows) -> Integers:
        """Word `k` of `rows`, in that order."""
        return self.leading[rows] if k == 0 else _word(self.digits, self.words[k], rows)


def encode(*tables: pa.Table) -> tuple[EncodedKeys, ...]:
    """Encode tables of key columns; words of one table compare with words of another.

    Each table holds exactly the key columns, in key order, with equal types and no nulls. Row order is free.
    Raises ValueError naming the column for nulls, differing types and types that cannot be a key.
    """
    digits: list[Sequence[Digit]] = []
    for position, name in enumerate(tables[0].column_names):
        digits.extend(digits_of(name, [table.column(position) for table in tables]))
    words = _layout([column[0] for column in digits])
    sides = [tuple(column[side] for column in digits) for side in range(len(tables))]
    return tuple(
        EncodedKeys(_leading(side, words[0], table.num_rows), side, words)
        for side, table in zip(sides, tables, strict=True)
    )


def require_ascending(keys: EncodedKeys, subject: str) -> None:
    """Raise ValueError naming `subject` and the row unless every key is greater than the one before."""
    rows: Rows = np.flatnonzero(keys.leading[1:] <= keys.leading[:-1])
    for k in range(len(keys.words)):
        before, after = keys.word(k, rows), keys.word(k, rows + 1)
        smaller = rows[after < before]
        if len(smaller):
            raise ValueError(f"{subject}: row {smaller[0] + 1} sorts before row {smaller[0]}, expected after")
        rows = rows[after == before]
    if len(rows):
        raise ValueError(f"{subject}: rows {rows[0]} and {rows[0] + 1} are equal, expected unique keys")


def _leading(digits: Sequence[Digit], slots: Sequence[Slot], rows: int) -> Integers:
    if len(slots) == 1 and isinstance(digit := digits[slots[0].digit], Integral):
        return digit.values
    leading: Words = np.empty(rows, np.uint64)
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        leading[block] = _word(digits, slots, block)
    return leading


def _word(digits: Sequence[Digit], slots: Sequence[Slot], rows: Rows | slice) -> Words:
    word = digits[slots[0].digit].read(slots[0], rows)
    for slot in slots[1:]:
        word <<= np.uint64(slot.bits)
        word |= digits[slot.digit].read(slot, rows)
    return word


def _layout(digits: Sequence[Digit]) -> tuple[tuple[Slot, ...], ...]:
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
