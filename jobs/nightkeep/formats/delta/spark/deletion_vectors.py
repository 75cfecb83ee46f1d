"""Deletion vectors -> a DataFrame of the positions they delete. Decoded in tasks.

The vector codec is the only code that the check shares with the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, StoredFile, deleted_positions
from nightkeep.storage import Storage


def vector_positions(
    spark: SparkSession, storage: Storage, files: Sequence[StoredFile[DeltaDataFile]]
) -> DataFrame | None:
    """The positions of the rows that vectors of `files` delete, each word once; None without a vector."""
    vectored = [file for file in files if file.file.vector is not None]
    if not vectored:
        return None
    sources = [(storage, file.number, file.file) for file in vectored]
    count = sum(file.file.deleted_rows for file in vectored)
    return deleted_positions(spark, sources, _decoded, count=count, most=BROADCAST_POSITIONS)


def _decoded(source: tuple[Storage, int, DeltaDataFile]) -> Iterator[tuple[int, BitMap64]]:
    storage, number, file = source
    yield number, read_vector(storage, file)
