"""Data files of formats that Spark does not read as they are -> a DataFrame of their stored rows, decoded in tasks.

Spark has no reader of Avro files without a package of its own. It has no positions of ORC files, fails at those that
have a TIMESTAMP WITH LOCAL TIME ZONE, and moves their dates before 1582. A file is read by one task, so that a position
does not depend on how Spark would split it. Of our code this shares the reader of stripes and of Avro's containers;
columns are chosen, merged and compared in Spark.
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
from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.model.arrow_types import Array
from nightkeep.spark.releases import frame_of
from nightkeep.storage import Storage

_BATCH_ROWS = 1 << 16
_NUMBER, _ROW, _KEY_PREFIX = "file", "row_index", "_KEY_"


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a task reads of each file: columns, their types as Spark's Arrow schema has them, which of them are CHAR."""

    storage: Storage
    columns: Sequence[tuple[str, PaimonType]]
    shown: pa.Schema


def arrow_rows(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[tuple[int, str]],
    columns: Sequence[tuple[str, PaimonType]],
    schema: T.StructType,
) -> DataFrame:
    """Every row of `files`, given as (number, path): `file`, `row_index` and the stored columns, typed as in `schema`.

    Blanks at the end of CHAR values in ORC files are left out. Times are cut to microseconds, rounded down.
    """
    reading = _Reading(storage, columns, to_arrow_schema(schema))

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column("pickled"):
                number, path = pickle.loads(pickled.as_py())
                yield from _rows(reading, number, path)

    shown = T.StructType([T.StructField(_NUMBER, T.IntegerType()), T.StructField(_ROW, T.LongType()), *schema.fields])
    table = pa.table({"pickled": pa.array([pickle.dumps(file) for file in files], pa.binary())})
    return frame_of(spark, table).mapInArrow(rows, shown)


def _rows(reading: _Reading, number: int, path: str) -> Iterator[pa.RecordBatch]:
    start = 0
    read = _orc_rows if format_of(path) == "orc" else _avro_rows
    for batch in read(reading, path):
        count = batch.num_rows
        columns = [
            _cut(batch.column(field.name)).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(count, field.type)
            for field in reading.shown
        ]
        numbers = [pa.array(np.full(count, number, np.int32)), pa.array(np.arange(start, start + count))]
        yield pa.record_batch([*numbers, *columns], [_NUMBER, _ROW, *reading.shown.names])
        start += count


def _orc_rows(reading: _Reading, path: str) -> Iterator[pa.RecordBatch]:
    stored = OrcRows(reading.storage.open(path), subject=path)
    names = _held(path, reading, stored.names)
    for batch in stored.batches(names, range(len(stored.starts) - 1), rows=_BATCH_ROWS):
        for name, kind in reading.columns:
            if kind.root is TypeRoot.CHAR and name in names:
                place = names.index(name)
                batch = batch.set_column(place, name, pc.utf8_rtrim(batch.column(place), " "))
        yield batch


def _avro_rows(reading: _Reading, path: str) -> Iterator[pa.RecordBatch]:
    """Decoded by fastavro; the rewrite and the gate decode with Polars."""
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
