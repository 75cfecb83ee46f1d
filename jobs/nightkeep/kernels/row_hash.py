"""Columns -> two independent 64-bit hashes per row, block by block. Equal rows hash equally in any encoding.

A row's hash is a state that takes in one column after the other: add its word, then mix. Mixing permutes the
64-bit numbers and is not linear, so a value counts by its column and by its neighbours. The two lanes differ
in every constant. The word of bytes is their hash by Polars: compiled, and the same in every process of one version.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from nightkeep.kernels.arrow_buffers import BYTE_BITS, WORD_BYTES, Integers, Words, buffer_values, is_bytes
from nightkeep.model.arrow_types import Array, ListArray

# The states and temporaries of a block stay in the second-level cache (1.8 ns a mix; 3.5 in blocks of 2,048).
_BLOCK_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class _Lane:
    """The constants of one hash. `null` is the word of a null; `length` spreads lengths and list places.

    Bytes are hashed by Polars, with `byte_seed`.
    """

    seed: np.uint64
    byte_seed: int
    null: np.uint64
    length: np.uint64
    shifts: tuple[int, int, int]
    factors: tuple[np.uint64, np.uint64]


# Shifts and factors are those of splitmix64 and of murmur3's 64-bit finaliser; the rest are digits of pi.
_LANES = (
    _Lane(
        seed=np.uint64(0x243F6A8885A308D3),
        byte_seed=0x3F84D5B5B5470917,
        null=np.uint64(0x13198A2E03707344),
        length=np.uint64(0xA4093822299F31D1),
        shifts=(30, 27, 31),
        factors=(np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)),
    ),
    _Lane(
        seed=np.uint64(0x082EFA98EC4E6C89),
        byte_seed=0x1B79ABFF7E6A1C4D,
        null=np.uint64(0x452821E638D01377),
        length=np.uint64(0xBE5466CF34E90C6D),
        shifts=(33, 33, 33),
        factors=(np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)),
    ),
)


def hash_blocks(columns: Sequence[Array], rows: int) -> Iterator[tuple[Words, Words]]:
    """The two hashes of each of `rows` rows, in row order. Raises ValueError for a type without a rule."""
    sources = [_source(column) for column in columns]
    for start in range(0, rows, _BLOCK_ROWS):
        block = slice(start, min(start + _BLOCK_ROWS, rows))
        states = tuple(np.full(block.stop - start, lane.seed) for lane in _LANES)
        for source in sources:
            source.absorb(states, block)
        yield cast(tuple[Words, Words], states)


def _take_in(state: Words, words: Words | np.uint64, lane: _Lane) -> None:
    state += words
    for shift, factor in zip(lane.shifts, lane.factors, strict=False):
        state ^= state >> np.uint64(shift)
        state *= factor
    state ^= state >> np.uint64(lane.shifts[-1])


@dataclass(frozen=True, slots=True)
class _Fixed:
    """One array per 64-bit part of a value."""

    parts: tuple[Integers, ...]
    nulls: npt.NDArray[np.bool_] | None

    def absorb(self, states: Sequence[Words], block: slice) -> None:
        for part in self.parts:
            words = part[block].astype(np.uint64)
            for state, lane in zip(states, _LANES, strict=True):
                _mark_nulls(words, self.nulls, block, lane)
                _take_in(state, words, lane)


@dataclass(frozen=True, slots=True)
class _Hashed:
    """One array per lane: the hashes in that lane of bytes, or of the children of nested values."""

    words: tuple[Words, ...]
    nulls: npt.NDArray[np.bool_] | None

    def absorb(self, states: Sequence[Words], block: slice) -> None:
        for state, lane_words, lane in zip(states, self.words, _LANES, strict=True):
            words = lane_words[block].copy()
            _mark_nulls(words, self.nulls, block, lane)
            _take_in(state, words, lane)


_Source = _Fixed | _Hashed


def _mark_nulls(words: Words, nulls: npt.NDArray[np.bool_] | None, block: slice, lane: _Lane) -> None:
    if nulls is not None:
        words[nulls[block]] = lane.null


def _source(column: Array) -> _Source:
    column = _plain(column)
    kind = column.type
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if pa.types.is_null(kind):
        return _Fixed((np.zeros(len(column), np.uint64),), np.ones(len(column), np.bool_))
    if is_bytes(kind):
        return _Hashed(_byte_hashes(column), nulls)
    if pa.types.is_struct(kind):
        return _Hashed(_hashes(cast(pa.StructArray, column).flatten(), len(column)), nulls)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return _Hashed(_list_hashes(cast(ListArray, column)), nulls)
    return _Fixed(_fixed_parts(column), nulls)


def _plain(column: Array) -> Array:
    """The same values in a form `_source` reads."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pa.DictionaryArray):
        return _plain(column.dictionary_decode())
    if pa.types.is_fixed_size_list(kind):
        return column.cast(pa.list_(kind.value_field))
    if is_bytes(kind) and kind != pa.binary():
        return column.cast(pa.binary() if kind == pa.string() else pa.large_binary())
    if pa.types.is_boolean(kind):
        return column.cast(pa.uint8())
    return column


def _fixed_parts(column: Array) -> tuple[Integers, ...]:
    kind = column.type
    if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
        raise ValueError(f"column type {kind}, expected one whose values have a hash")
    width = kind.bit_width // BYTE_BITS
    rows = slice(column.offset, column.offset + len(column))
    if width <= WORD_BYTES:
        return (buffer_values(column, 1, np.dtype(f"<u{width}"))[rows],)
    parts = buffer_values(column, 1, np.dtype("<u8")).reshape(-1, width // WORD_BYTES)[rows]
    return tuple(parts[:, part] for part in range(width // WORD_BYTES))


def _byte_hashes(column: Array) -> tuple[Words, ...]:
    """Per lane, of each value of a binary column, the hash of its bytes by Polars; the hash of a null means nothing."""
    values = pl.Series(pl.from_arrow(column))
    return tuple(values.hash(seed=lane.byte_seed).to_numpy() for lane in _LANES)


def _hashes(columns: Sequence[Array], rows: int) -> tuple[Words, ...]:
    hashes = tuple(np.empty(rows, np.uint64) for _ in _LANES)
    for block, states in enumerate(hash_blocks(columns, rows)):
        for whole, state in zip(hashes, states, strict=True):
            whole[block * _BLOCK_ROWS :][: len(state)] = state
    return hashes


def _list_hashes(column: ListArray) -> tuple[Words, ...]:
    """Per lane and list: its length and the sum of its items' hashes, each mixed with its place in the list.

    The entries of a map have no place.
    """
    offsets = column.offsets.to_numpy()
    values = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    starts, stops = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    hashes = []
    for items, lane in zip(_hashes([values], len(values)), _LANES, strict=True):
        if not pa.types.is_map(column.type):
            place = np.arange(len(values)) - np.repeat(starts, np.diff(offsets))
            _take_in(items, place.astype(np.uint64) * lane.length, lane)
        sums = np.append(np.zeros(1, np.uint64), np.cumsum(items, dtype=np.uint64))
        hashes.append(sums[stops] - sums[starts] + (stops - starts).astype(np.uint64) * lane.length)
    return tuple(hashes)
