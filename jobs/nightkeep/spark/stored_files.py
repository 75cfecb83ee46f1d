"""Data files of a version -> numbers, positions and paths for Spark's joins, for every format.

The position of a row is one long: the number of its file among the files that are read, and its ordinal in the file.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import MissingFile
from nightkeep.spark.releases import frame_of
from nightkeep.spark.view import column, listed_path, spelling, spelt

ROW_BITS: Final = 40
_KEPT: Final = "nightkeep-kept"
_NAME_HASH: Final = "nightkeep-name-hash"
_WORD_SHIFT: Final = 6
_WORD_MASK: Final = 63
WORD, BITS = "number_of_word", "bits_of_word"
"""Columns of numbers as words of 64 bits. Numbers that follow each other find the same entry of a join's table."""
BROADCAST_POSITIONS: Final = 1 << 22
"""Up to this many positions, or hashes of keys, are sent to every executor (16 bytes each, 64 MiB). With more, the rows
are shuffled."""

F_co = TypeVar("F_co", covariant=True)
Source = TypeVar("Source")
_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredFile(Generic[F_co]):
    """A data file to read. `number` stands for it in positions; `unit` is the index of its unit. `shown`: the bits of
    the versions that hold it."""

    number: int
    unit: int
    file: F_co
    shown: int = 1


def packed(file: Column, row: Column) -> Column:
    """A file's number and a row's ordinal as one long, the cheapest type for Spark's joins."""
    return F.shiftleft(file.cast("long"), ROW_BITS).bitwiseOR(row)


def listed_paths(read: DataFrame, files: Iterable[tuple[str, str]]) -> list[str]:
    """The paths of files, given as (root, name), spelled as `_metadata.file_path` of the frame that reads them."""
    paths = {spelt(uri): listed_path(uri) for uri in read.inputFiles()}
    names = [spelling(root, name) for root, name in files]
    missing = [name for name in names if name not in paths]
    if missing:
        raise MissingFile(missing[0], "a data file that Spark lists", f"{len(paths)} others")
    return [paths[name] for name in names]


def with_file_facts(rows: DataFrame, facts: DataFrame, name: str) -> DataFrame:
    """Stored rows with the facts of their files; rows of other files are left out. Both frames have the file's `name`.

    Joined by a hash, as Spark joins numbers faster than texts. Two names with one hash would have more rows, on either
    side of a comparison.
    """
    hashed = facts.withColumn(_NAME_HASH, F.xxhash64(name)).drop(name)
    return rows.withColumn(_NAME_HASH, F.xxhash64(name)).join(F.broadcast(hashed), on=_NAME_HASH).drop(_NAME_HASH)


def no_rows(spark: SparkSession, schema: T.StructType, payload: Mapping[str, Column]) -> DataFrame:
    """An empty frame with the columns of `TableView.rows`, for units without a file."""
    fields = [T.StructField(column(i), field.dataType) for i, field in enumerate(schema.fields)]
    empty = spark.createDataFrame([], T.StructType([T.StructField("unit", T.IntegerType()), *fields]))
    values = [value.alias(name) for name, value in payload.items()]
    return empty.select("unit", F.expr("true").alias("sound"), *values)


def without_true(rows: DataFrame, table: Sequence[Column], condition: str) -> DataFrame:
    """The rows for which a condition is not true. `table` are the table's own columns, under the names that the
    condition has for them; `rows` may have other names, which may clash with those."""
    kept = F.struct(*(rows[name] for name in rows.columns)).alias(_KEPT)
    is_true = F.coalesce(F.expr(condition), F.lit(False))  # noqa: FBT003
    return rows.select(kept, *table).where(~is_true).select(f"`{_KEPT}`.*")


def with_truth(rows: DataFrame, table: Sequence[Column], condition: str, name: str) -> DataFrame:
    """The rows with a column `name`: whether the condition is true. `table` as in `without_true`."""
    kept = F.struct(*(rows[held] for held in rows.columns)).alias(_KEPT)
    is_true = F.coalesce(F.expr(condition), F.lit(False))  # noqa: FBT003
    return rows.select(kept, *table).select(f"`{_KEPT}`.*", is_true.alias(name))


def with_set(rows: DataFrame, table: Mapping[str, str], condition: str, sets: Mapping[str, str]) -> DataFrame:
    """The rows. Where the condition is true, columns are set to expressions.

    `table` has the names in `rows` by the names that the texts have for the table's columns. Expressions see the row as
    it was.
    """
    kept = F.struct(*(rows[name] for name in rows.columns)).alias(_KEPT)
    named = rows.select(kept, *(F.col(name).alias(text_name) for text_name, name in table.items()))
    is_true, kinds = F.coalesce(F.expr(condition), F.lit(False)), dict(rows.dtypes)  # noqa: FBT003
    held = {name: F.col(f"`{_KEPT}`.`{name}`") for name in rows.columns}
    for text_name, expression in sets.items():
        name = table[text_name]
        value = F.expr(f"CAST(({expression}) AS {kinds[name]})")
        held[name] = F.when(is_true, value).otherwise(held[name])
    return named.select(*(value.alias(name) for name, value in held.items()))


def deleted_positions(
    spark: SparkSession,
    sources: Sequence[Source],
    decode: Callable[[Source], Iterable[tuple[int, BitMap | BitMap64]]],
    *,
    count: int | None,
    most: int,
) -> DataFrame:
    """The positions that deletion vectors delete, as WORD and BITS, decoded in tasks. `sources` and `decode` must
    pickle.

    `decode` returns, for each file of a source, its number and the ordinals of its deleted rows, `count` in all, None
    if that is unknown. Up to `most` are sent to every executor.
    """

    def words(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column("pickled"):
                for number, ordinals in decode(pickle.loads(pickled.as_py())):
                    yield pa.record_batch([pa.array(each) for each in _words(number, ordinals)], [WORD, BITS])

    table = pa.table({"pickled": pa.array([pickle.dumps(source) for source in sources], pa.binary())})
    return broadcast_few(frame_of(spark, table).mapInArrow(words, f"{WORD} long, {BITS} long"), count, most)


def without_positions(rows: DataFrame, positions: DataFrame) -> DataFrame:
    """The rows whose `position` is not among `positions`, given as WORD and BITS."""
    return rows.join(positions, on=is_in_words(F.col("position")), how="left_anti")


def words_of(numbers: DataFrame, number: Column) -> DataFrame:
    """The values of `number`, a long, in a frame: WORD and BITS, one row for each word."""
    bit = F.call_function("shiftleft", F.lit(1).cast("long"), bit_of(number))
    return joined_words(numbers.select(word_of(number).alias(WORD), bit.alias(BITS)))


def joined_words(words: DataFrame) -> DataFrame:
    """Words with all their bits, each word once."""
    return words.groupBy(WORD).agg(F.bit_or(BITS).alias(BITS))


def is_in_words(number: Column) -> Column:
    """Whether a row of a frame with WORD and BITS has the `number`, a long, of a row of another: on what both join."""
    return (word_of(number) == F.col(WORD)) & (F.bit_get(F.col(BITS), bit_of(number)) == 1)


def word_of(number: Column) -> Column:
    """The WORD of a number, a long."""
    return F.shiftright(number, _WORD_SHIFT)


def bit_of(number: Column) -> Column:
    """The place of a number in the BITS of its word."""
    return number.bitwiseAND(_WORD_MASK).cast("int")


def _words(number: int, ordinals: BitMap | BitMap64) -> tuple[_Longs, _Longs]:
    """The positions of deleted rows as words: their numbers, ascending, and their bits."""
    positions = np.asarray(ordinals.to_array(), np.int64) | np.int64(number << ROW_BITS)
    numbers = positions >> _WORD_SHIFT
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    if not len(starts):
        return numbers, numbers
    bits = np.left_shift(np.uint64(1), (positions & _WORD_MASK).astype(np.uint64))
    return numbers[starts], np.bitwise_or.reduceat(bits, starts).view(np.int64)


def broadcast_few(deletes: DataFrame, count: int | None, most: int) -> DataFrame:
    """The frame, to be sent to every executor if `count` is known and at most `most`."""
    return F.broadcast(deletes) if count is not None and count <= most else deletes
