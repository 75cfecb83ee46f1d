"""Deletion vectors -> a DataFrame of the positions they delete, decoded in tasks.

The codec is the one thing the second opinion shares with the first: a vector's bytes mean one set of positions.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.spark.data_files import ROW_BITS, DeltaStoredFile
from nightkeep.storage import Storage

BROADCAST_POSITIONS = 1 << 22
"""Up to here the positions are sent to every executor (16 bytes each, 64 MiB); above, the rows are shuffled."""


def without_deleted(
    spark: SparkSession, storage: Storage, rows: DataFrame, files: Sequence[DeltaStoredFile]
) -> DataFrame:
    """`rows` of `files` whose `position` no vector deletes."""
    vectored = [file for file in files if file.file.vector is not None]
    if not vectored:
        return rows
    pickled = [pickle.dumps((storage, file.number, file.file)) for file in vectored]
    table = pa.table({"pickled": pa.array(pickled, pa.binary())})
    deleted = spark.createDataFrame(table).mapInArrow(_decoded, "position long")
    if sum(file.file.deleted_rows for file in vectored) <= BROADCAST_POSITIONS:
        deleted = F.broadcast(deleted)
    return rows.join(deleted, on="position", how="left_anti")


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for pickled in batch.column("pickled"):
            storage, number, file = pickle.loads(pickled.as_py())
            ordinals = np.asarray(read_vector(storage, file).to_array(), np.int64)
            yield pa.record_batch([pa.array(ordinals | np.int64(number << ROW_BITS))], ["position"])
