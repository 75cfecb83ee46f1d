"""Rows whose hashes the check cannot tell apart: what each of its expectations sees when others are blind.

The check sums two hashes of each row, Spark's xxhash64 with two seeds. Each step of that hash has an inverse, so that
one column of 64 bits can give a row any hash of one seed; of rows with one hash in common, a search over sums finds
some whose other hashes add up to nothing (Wagner, "A Generalized Birthday Problem", 2002).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from nightkeep.checking.unit_fingerprints import _SEEDS

Bits = npt.NDArray[np.uint64]
Row = Mapping[str, int]
"""`number`, `first` and `second`, each as the unsigned 64 bits that are hashed."""
NUMBER, FIRST, SECOND = "number", "first", "second"
A, B = _SEEDS["a"], _SEEDS["b"]

_ONE, _TWO, _THREE, _FOUR, _FIVE = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
"""Primes of XXH64."""
_WHOLE = 1 << 64
_SPARK_SEED = 42
_LISTS, _LIST_BITS, _LIST_ROWS = 16, 13, 1 << 14


def _turned(bits: Bits, by: int) -> Bits:
    return (bits << np.uint64(by % 64)) | (bits >> np.uint64(-by % 64))


def _times(bits: Bits, factor: int) -> Bits:
    return bits * np.uint64(factor % _WHOLE)


def _plus(bits: Bits, more: int) -> Bits:
    return bits + np.uint64(more % _WHOLE)


def _inverse(factor: int) -> int:
    return pow(factor, -1, _WHOLE)


def _mixed(bits: Bits) -> Bits:
    bits = _times(bits ^ (bits >> np.uint64(33)), _TWO)
    bits = _times(bits ^ (bits >> np.uint64(29)), _THREE)
    return bits ^ (bits >> np.uint64(32))


def _unmixed(bits: Bits) -> Bits:
    bits = _times(bits ^ (bits >> np.uint64(32)), _inverse(_THREE))
    bits = _times(bits ^ (bits >> np.uint64(29)) ^ (bits >> np.uint64(58)), _inverse(_TWO))
    return bits ^ (bits >> np.uint64(33))


@dataclass(frozen=True, slots=True)
class _Step:
    """One value that goes into a hash: of 4 or of 8 bytes."""

    value: Bits
    width: int

    @property
    def _turn(self) -> tuple[int, int, int]:
        return (23, _TWO, _THREE) if self.width == 4 else (27, _ONE, _FOUR)

    @property
    def _part(self) -> Bits:
        return _times(self.value if self.width == 4 else _turned(_times(self.value, _TWO), 31), _ONE)

    def onto(self, seed: Bits) -> Bits:
        by, factor, more = self._turn
        return _mixed(_plus(_times(_turned(_plus(seed, _FIVE + self.width) ^ self._part, by), factor), more))

    def before(self, found: Bits) -> Bits:
        """The seed onto which this step gives `found`."""
        return _plus(self._open(found) ^ self._part, -_FIVE - self.width)

    def valued(self, seed: Bits, found: Bits) -> Bits:
        """The value of 8 bytes that gives `found` onto `seed`."""
        part = _times(self._open(found) ^ _plus(seed, _FIVE + self.width), _inverse(_ONE))
        return _times(_turned(part, -31), _inverse(_TWO))

    def _open(self, found: Bits) -> Bits:
        by, factor, more = self._turn
        return _turned(_times(_plus(_unmixed(found), -more), _inverse(factor)), -by)


def _bits(value: int) -> Bits:
    return np.array([value % _WHOLE], np.uint64)


@dataclass(frozen=True, slots=True)
class Hashed:
    """The columns of a table in order: a name of `Row`, None for a null, or the number of a date or of an INT."""

    columns: tuple[str | int | None, ...]

    def hashes(self, rows: Mapping[str, Bits], seed: int) -> Bits:
        found = _bits(_SPARK_SEED)
        for step in self._steps(rows, seed):
            found = step.onto(found)
        return found

    def second(self, number: Bits, first: Bits, *, seed: int, hashes: Bits) -> Bits:
        """The `second` of each row that gives it one of the `hashes`."""
        steps = list(self._steps({NUMBER: number, FIRST: first, SECOND: _bits(0)}, seed))
        at = 2 + sum(value is not None for value in self.columns[: self.columns.index(SECOND)])
        seeds = _bits(_SPARK_SEED)
        for step in steps[:at]:
            seeds = step.onto(seeds)
        for step in reversed(steps[at + 1 :]):
            hashes = step.before(hashes)
        return steps[at].valued(seeds, hashes)

    def _steps(self, rows: Mapping[str, Bits], seed: int) -> Iterator[_Step]:
        yield _Step(_bits(seed), 4)
        yield _Step(_bits(sum(1 << place for place, column in enumerate(self.columns) if column is None)), 8)
        for column in self.columns:
            if column is not None:
                yield _Step(rows[column], 8) if isinstance(column, str) else _Step(_bits(column & 0xFFFFFFFF), 4)

    def nothing(self, first: int) -> list[Row]:
        """Rows whose hashes add up to 0 with both seeds; all their hashes are 0 with seed A. `first` numbers them."""
        return list(_nothing(self, first))

    def alike(self, row: Row, number: int, *, seed: int) -> Row:
        """Another row, of that number, with the same hash of one seed."""
        hashes = self.hashes({name: _bits(value) for name, value in row.items()}, seed)
        others = _bits(number), _free(_bits(row[NUMBER] + (1 << 40)))
        (found,) = _rows(*others, self.second(*others, seed=seed, hashes=hashes))
        return found


@cache
def _nothing(hashed: Hashed, first: int) -> Sequence[Row]:
    number = np.arange(first, first + _LISTS * _LIST_ROWS, dtype=np.uint64)
    free = _free(number)
    second = hashed.second(number, free, seed=A, hashes=_bits(0))
    hashes = hashed.hashes({NUMBER: number, FIRST: free, SECOND: second}, B)
    at = _adding_up_to_nothing(hashes.reshape(_LISTS, _LIST_ROWS))
    return _rows(number[at], free[at], second[at])


def _free(number: Bits) -> Bits:
    """As doubles: other numbers than 0, as a table may have them in a column of DOUBLE."""
    return (number.astype(np.float64) / 4 + 1).view(np.uint64)


def _rows(number: Bits, first: Bits, second: Bits) -> list[Row]:
    columns = zip(number.tolist(), first.tolist(), second.tolist(), strict=True)
    return [{NUMBER: n, FIRST: f, SECOND: s} for n, f, s in columns]


def _adding_up_to_nothing(lists: Bits) -> npt.NDArray[np.int64]:
    """Places of one number of each list, in all lists one after another, whose sum is 0."""
    places = np.arange(lists.size).reshape(*lists.shape, 1)
    held = [(sums, at) for sums, at in zip(lists, places, strict=True)]
    for bits in (_LIST_BITS, 2 * _LIST_BITS, 3 * _LIST_BITS, 64):
        held = [_merged(*pair, bits=bits) for pair in zip(held[::2], held[1::2], strict=True)]
    ((_, found),) = held
    return found[0]


def _merged(left: tuple[Bits, Any], right: tuple[Bits, Any], *, bits: int) -> tuple[Bits, Any]:
    """Sums of a number of each side, of those whose lowest bits are 0: as many as there were numbers."""
    mask = np.uint64((1 << bits) - 1)
    wanted = pl.DataFrame({"low": (np.uint64(0) - left[0]) & mask}).with_row_index("left")
    there = pl.DataFrame({"low": right[0] & mask}).with_row_index("right")
    pairs = wanted.join(there, on="low").head(_LIST_ROWS)
    lefts, rights = (pairs[name].to_numpy() for name in ("left", "right"))
    return left[0][lefts] + right[0][rights], np.concatenate([left[1][lefts], right[1][rights]], axis=1)


def signed(values: Sequence[int]) -> list[int]:
    return np.array(values, np.uint64).view(np.int64).tolist()


def doubles(values: Sequence[int]) -> list[float]:
    return np.array(values, np.uint64).view(np.float64).tolist()
