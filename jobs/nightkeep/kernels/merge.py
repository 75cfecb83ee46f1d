"""Sorted runs -> the row each key keeps. Order columns are read only for keys that occur more than once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Integers, Rows
from nightkeep.kernels.key_order import EncodedKeys, encode
from nightkeep.model.arrow_types import ChunkedArray

Flags = npt.NDArray[np.bool_]


class Direction(Enum):
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class OrderBy:
    """The greater value wins; the smaller one when DESCENDING; null loses to every value either way."""

    column: str
    direction: Direction = Direction.ASCENDING


def keep_latest(rows: pa.Table, *, keys: Sequence[str], order: Sequence[OrderBy]) -> npt.NDArray[np.int64]:
    """The row each key keeps, in Paimon's key order (nightkeep.kernels.key_order): int64, one per key.

    A key keeps its greatest row by `order`, compared column by column; of equal rows the last in `rows`.
    `rows` may come in any order; runs sorted by key, the oldest first, are merged without a full sort.
    Values are compared like keys. Raises ValueError for a null key and for a type without an order.
    Source: Paimon DeduplicateMergeFunction over SortMergeReader; nulls as in its generated comparators.
    """
    arranged = _arrange(rows, keys, order)
    return arranged.rows[arranged.lasts]


def in_order(rows: pa.Table, *, keys: Sequence[str], order: Sequence[OrderBy]) -> tuple[Rows, Rows]:
    """All rows by key, then by `order`, then by place; and where each key starts among them. Both int64.

    Arguments and errors as keep_latest, which keeps the last row of each key.
    """
    arranged = _arrange(rows, keys, order)
    starts = np.append(np.zeros(min(1, rows.num_rows), np.int64), arranged.lasts[:-1] + 1)
    return arranged.rows, starts


@dataclass(frozen=True, slots=True)
class _Arranged:
    """`rows` sorted by key, then order, then place. `lasts` are the indexes in it of the last rows of each key."""

    rows: Rows
    lasts: Rows


def _arrange(rows: pa.Table, keys: Sequence[str], order: Sequence[OrderBy]) -> _Arranged:
    (encoded,) = encode(rows.select(list(keys)))
    arranged, repeats = _by_key(encoded)
    repeated = _members(repeats)
    pairs = np.flatnonzero(repeats[repeated[:-1]])
    words = [word for by in order for word in _order_words(rows.column(by.column), by, arranged[repeated])]
    if not _ascends(words, pairs):
        groups = _groups(repeats[repeated[:-1]])
        arranged[repeated] = arranged[repeated[np.lexsort((*reversed(words), groups))]]
    lasts = np.flatnonzero(np.append(~repeats, np.ones(min(1, rows.num_rows), np.bool_)))
    return _Arranged(arranged, lasts)


def _by_key(keys: EncodedKeys) -> tuple[Rows, Flags]:
    """The rows in key order, equal keys in their given order; and flags of rows with the same key as the row before."""
    # The stable sort is timsort, which finds sorted runs and merges them.
    rows = np.argsort(keys.leading, kind="stable")
    leading = keys.leading[rows]
    repeats = leading[1:] == leading[:-1]
    for k in range(1, len(keys.words)):
        tied = _members(repeats)
        if not len(tied):
            break
        word, inner = keys.word(k, rows[tied]), repeats[tied[:-1]]
        if bool((inner & (word[1:] < word[:-1])).any()):
            sequence = np.lexsort((word, _groups(inner)))
            rows[tied] = rows[tied[sequence]]
            word = word[sequence]
        repeats[tied[:-1]] = inner & (word[1:] == word[:-1])
    return rows, repeats


def _members(repeats: Flags) -> Rows:
    """The positions that agree with a neighbour."""
    edge = np.zeros(1, np.bool_)
    return np.flatnonzero(np.append(repeats, edge) | np.append(edge, repeats))


def _groups(repeats: Flags) -> npt.NDArray[np.int64]:
    return np.append(np.zeros(1, np.int64), np.cumsum(~repeats))


def _order_words(column: ChunkedArray, by: OrderBy, rows: Rows) -> list[Integers]:
    """Words of `rows` whose greater value wins."""
    if column.null_count == len(column):
        return []
    present = column if not column.null_count else pc.fill_null(column, column.drop_null()[0])
    (encoded,) = encode(pa.table({by.column: present}))
    words = [encoded.word(k, rows) for k in range(len(encoded.words))]
    if by.direction is Direction.DESCENDING:
        words = [np.invert(word) for word in words]
    if not column.null_count:
        return words
    valid = pc.is_valid(column).to_numpy()[rows]
    return [valid.astype(np.uint8), *words]


def _ascends(words: Sequence[Integers], pairs: Rows) -> bool:
    """Whether no pair (i, i + 1) descends."""
    for word in words:
        before, after = word[pairs], word[pairs + 1]
        if bool((after < before).any()):
            return False
        pairs = pairs[after == before]
    return True
