"""Deletion vectors -> a DataFrame of the positions they delete, decoded in tasks.

The codec is the one thing the second opinion shares with the first: a vector's bytes mean one set of positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.snapshot import DeltaDataFile
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, StoredFile, broadcast_few, decoded_positions
from nightkeep.storage import Storage


def without_deleted(
    spark: SparkSession, storage: Storage, rows: DataFrame, files: Sequence[StoredFile[DeltaDataFile]]
) -> DataFrame:
    """`rows` of `files` whose `position` no vector deletes."""
    vectored = [file for file in files if file.file.vector is not None]
    if not vectored:
        return rows
    deleted = decoded_positions(spark, [(storage, file.number, file.file) for file in vectored], _decoded)
    count = sum(file.file.deleted_rows for file in vectored)
    return rows.join(broadcast_few(deleted, count, BROADCAST_POSITIONS), on="position", how="left_anti")


def _decoded(source: tuple[Storage, int, DeltaDataFile]) -> Iterator[tuple[int, BitMap64]]:
    storage, number, file = source
    yield number, read_vector(storage, file)
