"""Deletion vectors -> a DataFrame of the positions they delete. Decoded in tasks.

The vector codec is the only code that the check shares with the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, StoredFile, without_positions
from nightkeep.storage import Storage


def without_deleted(
    spark: SparkSession, storage: Storage, rows: DataFrame, files: Sequence[StoredFile[DeltaDataFile]]
) -> DataFrame:
    """The live rows: those of `rows` whose `position` no vector deletes. `files` are their files."""
    vectored = [file for file in files if file.file.vector is not None]
    if not vectored:
        return rows
    sources = [(storage, file.number, file.file) for file in vectored]
    count = sum(file.file.deleted_rows for file in vectored)
    return without_positions(spark, rows, sources, _decoded, count=count, most=BROADCAST_POSITIONS)


def _decoded(source: tuple[Storage, int, DeltaDataFile]) -> Iterator[tuple[int, BitMap64]]:
    storage, number, file = source
    yield number, read_vector(storage, file)
