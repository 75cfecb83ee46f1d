"""Files of buckets -> the files of each bucket's largest sorted run. Most of its rows need no merge.

A merge by a window shuffles and sorts every row. Readers merge only what overlaps (MergeTreeSplitGenerator.java), and
in a table with a few new rows over many old ones that is little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.binary_row import sort_key
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.spark.data_files import PaimonStoredFile
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, is_in_words, words_of

FEW_ROWS: Final = 1 << 20
"""Up to so many rows, sorting all of them takes less than reading the run twice."""
_LEAST_RATIO: Final = 4

_Files = Sequence[PaimonStoredFile]


class ReadsRows(Protocol):
    """Gives the live rows of files that `kept` leaves of their stored rows, which have `unit` and the key's columns."""

    def __call__(self, files: _Files, kept: Callable[[DataFrame], DataFrame] = ...) -> DataFrame: ...


def largest_runs(files: _Files, schema: PaimonSchema) -> tuple[_Files, _Files]:
    """The files of each bucket's largest sorted run, and all others; no run where a merge of everything costs less.

    A sorted run is a level above 0 whose files' key ranges do not overlap, so that no key has two rows in it.
    """
    levels: defaultdict[tuple[int, int], list[PaimonStoredFile]] = defaultdict(list)
    for file in files:
        levels[file.unit, file.file.level].append(file)
    runs: dict[int, list[PaimonStoredFile]] = {}
    for (unit, level), held in levels.items():
        if level > 0 and _rows(held) > _rows(runs.get(unit, ())) and _is_sorted(held, schema):
            runs[unit] = held
    chosen = {file.number for held in runs.values() for file in held}
    run, others = ([file for file in files if (file.number in chosen) is wanted] for wanted in (True, False))
    is_cheaper = FEW_ROWS < _rows(run) >= _LEAST_RATIO * _rows(others) and _rows(others) <= BROADCAST_POSITIONS
    return (run, others) if is_cheaper or not others else ([], files)


def met_rows(
    rows: ReadsRows, runs: tuple[_Files, _Files], key: Sequence[str], *, across_units: bool
) -> DataFrame | None:
    """The rows that may have to be merged: those of the other files, and those of the run whose `key` a row of them may
    have. None if there are no other files.

    Keys are distinguished by a number: of two that share it, both are merged. With `across_units`, a key may be in
    several units.
    """
    run, others = runs
    if not others:
        return None
    more = rows(others)
    if not run:
        return more
    is_whole = len(key) == 1 and isinstance(more.schema[key[0]].dataType, T.IntegralType)
    unit = F.xxhash64("unit") if across_units else F.lit(0)
    # Keys of a run ascend, so that whole numbers follow each other.
    number = F.col(key[0]).cast("long").bitwiseXOR(unit) if is_whole else F.xxhash64("unit", *key)
    words = F.broadcast(words_of(more, number))
    return rows(run, lambda stored: stored.join(words, is_in_words(number), "left_semi")).unionByName(more)


def _rows(files: _Files) -> int:
    return sum(file.file.rows for file in files)


def _is_sorted(files: _Files, schema: PaimonSchema) -> bool:
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    ranges = sorted((sort_key(f.file.min_key, types), sort_key(f.file.max_key, types)) for f in files)
    return all(low <= high for low, high in ranges) and all(left[1] < right[0] for left, right in pairwise(ranges))
