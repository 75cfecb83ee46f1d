"""Files of several versions -> their stored rows, read once, each with the versions that show it.

A version is a bit of `SHOWN`. A row begins with the bits of the versions that hold its file, and each version that
hides the row takes its own bit away. A row without bits is shown by none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import Final, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nightkeep.spark.stored_files import BITS, WORD, StoredFile, bit_of, word_of

SHOWN: Final = "shown"

Held = TypeVar("Held")


def shared(
    sides: Sequence[Sequence[tuple[int, Held]]], identity: Callable[[Held], Hashable]
) -> list[list[StoredFile[Held]]]:
    """The files of each version, each given with the index of its unit, numbered.

    A file that several versions hold in the same unit, with equal `identity`, has one number and the bits of all; two
    files of one version never share a number.
    """
    numbers: dict[Hashable, int] = {}
    bits: Counter[int] = Counter()
    found: list[list[tuple[int, int, Held]]] = []
    for side, held in enumerate(sides):
        times: Counter[Hashable] = Counter()
        own = []
        for unit, file in held:
            name = (unit, identity(file))
            number = numbers.setdefault((name, times[name]), len(numbers))
            times[name] += 1
            bits[number] |= 1 << side
            own.append((number, unit, file))
        found.append(own)
    return [[StoredFile(number, unit, file, bits[number]) for number, unit, file in own] for own in found]


def read_apart(sides: Sequence[DataFrame]) -> DataFrame:
    """Rows of versions that are read one by one, each with the bit of its own."""
    return reduce(DataFrame.unionByName, (rows.withColumn(SHOWN, F.lit(1 << n)) for n, rows in enumerate(sides)))


def hidden_where(rows: DataFrame, condition: Column, side: int) -> DataFrame:
    """`rows`, of which version `side` does not show those where the condition is true. It is not true for null."""
    bit = F.when(condition, F.lit(1 << side)).otherwise(F.lit(0))
    return rows.withColumn(SHOWN, F.col(SHOWN).bitwiseAND(F.bitwise_not(bit)))


def hidden_at(rows: DataFrame, positions: DataFrame, side: int) -> DataFrame:
    """`rows`, of which version `side` does not show those at `positions`: words of 64, each word once."""
    word, bits = f"{WORD}_{side}", f"{BITS}_{side}"
    named = positions.select(F.col(WORD).alias(word), F.col(BITS).alias(bits))
    joined = rows.join(named, on=word_of(F.col("position")) == F.col(word), how="left_outer")
    is_hidden = F.bit_get(F.col(bits), bit_of(F.col("position"))) == 1
    return hidden_where(joined, is_hidden, side).drop(word, bits)


def shown_by_some(rows: DataFrame) -> DataFrame:
    """The rows that at least one version shows."""
    return rows.where(F.col(SHOWN) != 0)
