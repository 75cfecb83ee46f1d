"""Deletion vectors -> a DataFrame of the positions they delete. Decoded in tasks.

The vector codec is the only code that the check shares with the rewrite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap, BitMap64
from pyspark.sql import DataFrame, SparkSession

from nightkeep.formats.paimon.deletes.vectors import decode_vector
from nightkeep.formats.paimon.metadata.schema import option_bool
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange, vector_ranges
from nightkeep.formats.paimon.spark.data_files import PaimonStoredFile
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, deleted_positions, joined_words, without_positions
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class _IndexFile:
    """A vector file: its bytes, and its needed vectors, each with its data file's number."""

    subject: str
    data: bytes
    vectors: tuple[tuple[int, VectorRange], ...]


def vector_positions(spark: SparkSession, storage: Storage, files: Sequence[PaimonStoredFile]) -> DataFrame | None:
    """The positions of the rows of `files` that vectors delete, each word once; None without a vector."""
    indexes = [index for held in _by_unit(files) for index in _index_files(storage, held)]
    if not indexes:
        return None
    vectors = [(number, vector) for index in indexes for number, vector in index.vectors]
    recorded = [vector.cardinality for _, vector in vectors if vector.cardinality is not None]
    count = sum(recorded) if len(recorded) == len(vectors) else None
    positions = deleted_positions(spark, indexes, _decoded, count=count, most=BROADCAST_POSITIONS)
    is_unique = len({number for number, _ in vectors}) == len(vectors)
    return positions if is_unique else joined_words(positions)


def ranges_by_file(files: Sequence[PaimonStoredFile]) -> Mapping[int, tuple[str, VectorRange]]:
    """For each of `files` with a vector, by its number: the name of the vector file, and where in it the vector is."""
    found = (each for held in _by_unit(files) for each in _ranges(held))
    return {number: (name, vector) for name, numbered in found for number, vector in numbered}


def without_deleted(
    spark: SparkSession, storage: Storage, rows: DataFrame, files: Sequence[PaimonStoredFile]
) -> DataFrame:
    """The live rows: those of `rows` whose `position` no vector deletes. `files` are their files."""
    deleted = vector_positions(spark, storage, files)
    return rows if deleted is None else without_positions(rows, deleted)


def _by_unit(files: Sequence[PaimonStoredFile]) -> Iterable[Sequence[PaimonStoredFile]]:
    by_unit: defaultdict[int, list[PaimonStoredFile]] = defaultdict(list)
    for file in files:
        by_unit[file.unit].append(file)
    return by_unit.values()


def _index_files(storage: Storage, files: Sequence[PaimonStoredFile]) -> Iterator[_IndexFile]:
    """The vector files of one bucket that delete rows of these files."""
    for name, numbered in _ranges(files):
        yield _IndexFile(name, storage.read(name), numbered)


def _ranges(files: Sequence[PaimonStoredFile]) -> Iterator[tuple[str, tuple[tuple[int, VectorRange], ...]]]:
    """The names of vector files of one bucket, each with the vectors of these files in it."""
    bucket = files[0].bucket
    numbers = {file.file.name: file.number for file in files}
    beside_data = option_bool(bucket.schemas.current, "index-file-in-data-file-dir")
    for record in bucket.index_records:
        numbered = tuple((numbers[v.data_file], v) for v in vector_ranges(record) if v.data_file in numbers)
        if numbered:
            yield f"{bucket.folder if beside_data else 'index'}/{record['_FILE_NAME']}", numbered


def _decoded(index: _IndexFile) -> Iterator[tuple[int, BitMap | BitMap64]]:
    for number, vector in index.vectors:
        yield number, decode_vector(index.data, vector, subject=index.subject)
