"""Avro files -> a DataFrame of their stored rows, decoded by fastavro in tasks. A rewrite and the gate use Polars.

Without a package of its own Spark has no reader of Avro files. A file is read by one task. Of our code this shares the
reader of Avro's containers. Columns are chosen, merged and compared in Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import array_of, open_container, well_formed
from nightkeep.encodings.avro_schemas import root_of
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.model.arrow_types import Array
from nightkeep.spark.orc_files import LABEL, ROW_INDEX
from nightkeep.spark.releases import frame_of
from nightkeep.storage import Storage

_BATCH_ROWS = 1 << 16
_KEY_PREFIX = "_KEY_"


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a task reads of each file: columns, and their types as Spark's Arrow schema has them."""

    storage: Storage
    columns: Sequence[tuple[str, PaimonType]]
    shown: pa.Schema


def avro_rows(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[tuple[int, str]],
    columns: Sequence[tuple[str, PaimonType]],
    schema: T.StructType,
) -> DataFrame:
    """Every row of `files`, given as (number, path): LABEL, ROW_INDEX and the stored columns, typed as in `schema`.

    Times are cut to microseconds, rounded down.
    """
    reading = _Reading(storage, columns, to_arrow_schema(schema))

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column("pickled"):
                number, path = pickle.loads(pickled.as_py())
                yield from _rows(reading, number, path)

    shown = T.StructType(
        [T.StructField(LABEL, T.IntegerType()), T.StructField(ROW_INDEX, T.LongType()), *schema.fields]
    )
    table = pa.table({"pickled": pa.array([pickle.dumps(file) for file in files], pa.binary())})
    return frame_of(spark, table).mapInArrow(rows, shown)


def _rows(reading: _Reading, number: int, path: str) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in _batches(reading, path):
        count = batch.num_rows
        columns = [
            _cut(batch.column(field.name)).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(count, field.type)
            for field in reading.shown
        ]
        numbers = [pa.array(np.full(count, number, np.int32)), pa.array(np.arange(start, start + count))]
        yield pa.record_batch([*numbers, *columns], [LABEL, ROW_INDEX, *reading.shown.names])
        start += count


def _batches(reading: _Reading, path: str) -> Iterator[pa.RecordBatch]:
    with well_formed(path):
        container = open_container(reading.storage.read(path), CODECS, subject=path)
        root = root_of(container.schema)
        names = _held(path, reading, [field["name"] for field in root.record["fields"]])
        records = container.records(array_of(root.kind))
        while rows := list(islice(records, _BATCH_ROWS)):
            yield pa.record_batch(
                {
                    name: pa.array([row[name] for row in rows], kind.arrow)
                    for name, kind in reading.columns
                    if name in names
                }
            )


def _held(path: str, reading: _Reading, stored: Sequence[str]) -> list[str]:
    """The columns to read that the file has. Only a thin file lacks some: its keys."""
    missing = [name for name, _ in reading.columns if name not in stored and not name.startswith(_KEY_PREFIX)]
    if missing:
        raise CorruptMetadata(path, f"columns {', '.join(missing)}", f"columns {', '.join(stored)}")
    return [name for name, _ in reading.columns if name in stored]


def _cut(column: Array) -> Array:
    cut: Array = pc.floor_temporal(column, unit="microsecond") if pa.types.is_timestamp(column.type) else column
    return cut
