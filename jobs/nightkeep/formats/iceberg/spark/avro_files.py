"""Avro files -> a DataFrame of every stored row, decoded by fastavro in tasks. A rewrite and the gate use Polars.

Without a package of its own Spark has no reader of Avro files. A file is read by one task. Of our code this shares the
reader of Avro's containers. Rows are merged and compared in Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import time
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, TimeType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import array_of, open_container, well_formed
from nightkeep.encodings.avro_schemas import root_of
from nightkeep.encodings.avro_types import column_types
from nightkeep.encodings.orc_fields import read_field
from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.spark.schema import Names, spark_type, stored_name
from nightkeep.model.arrow_types import Array, ArrowField, field_id
from nightkeep.spark.releases import frame_of
from nightkeep.storage import Storage

_BATCH_ROWS: Final = 1 << 16
_MICROS: Final = 1_000_000
PARQUET: Final = "parquet"
_Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a task reads of each file: `fields` by id, or by `names` in files without ids; `shown` are the types that
    Spark's Arrow schema has for them."""

    storage: Storage
    fields: tuple[NestedField, ...]
    names: Names | None
    shown: pa.Schema

    def place(self, held: Sequence[ArrowField], field: NestedField) -> int | None:
        """The index of a field among those of a file, or of a struct in it."""
        if self.names is None:
            found = (place for place, each in enumerate(held) if field_id(each) == field.field_id)
        else:
            name = self.names.get(field.field_id)
            found = (place for place, each in enumerate(held) if each.name == name)
        return next(found, None)


def stored_fields(storage: Storage, file: ContentFile) -> list[ArrowField]:
    """The columns of a file with the ids that it has. Raises CorruptMetadata, RefusedTable."""
    if file.format == "orc":
        return [read_field(field) for field in OrcRows(storage.open(file.name), subject=file.path).fields]
    with well_formed(file.path):
        container = open_container(storage.read(file.name), CODECS, subject=file.path)
        return list(column_types(root_of(container.schema).record, subject=file.path).fields)


def avro_rows(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[tuple[str, ContentFile]],
    fields: Sequence[NestedField],
    names: Names | None,
) -> DataFrame:
    """Every row of `files`, given with their paths: `file_path`, `row_index` and the fields by stored_name."""
    types = T.StructType([T.StructField(stored_name(field), spark_type(field.field_type)) for field in fields])
    reading = _Reading(storage, tuple(fields), names, to_arrow_schema(types))

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column("pickled"):
                path, file = pickle.loads(pickled.as_py())
                yield from _rows(reading, path, file)

    place = [T.StructField("file_path", T.StringType()), T.StructField("row_index", T.LongType())]
    table = pa.table({"pickled": pa.array([pickle.dumps(file) for file in files], pa.binary())})
    return frame_of(spark, table).mapInArrow(rows, T.StructType([*place, *types.fields]))


def _rows(reading: _Reading, path: str, file: ContentFile) -> Iterator[pa.RecordBatch]:
    start = 0
    for count, columns in _columns(reading, file):
        place = [pa.repeat(pa.scalar(path), count), pa.array(np.arange(start, start + count))]
        yield pa.record_batch([*place, *columns], ["file_path", "row_index", *reading.shown.names])
        start += count


def _columns(reading: _Reading, file: ContentFile) -> Iterator[tuple[int, list[Array]]]:
    with well_formed(file.path):
        container = open_container(reading.storage.read(file.name), CODECS, subject=file.path)
        root = root_of(container.schema)
        held = column_types(root.record, subject=file.path).fields
        records = container.records(array_of(root.kind))
        found = [(reading.place(held, field), field) for field in reading.fields]
        converts = [
            None if place is None else (held[place].name, _convert(reading, held[place].type, field.field_type))
            for place, field in found
        ]
        while rows := list(islice(records, _BATCH_ROWS)):
            yield (
                len(rows),
                [
                    pa.nulls(len(rows), shown.type)
                    if each is None
                    else pa.array([each[1](row[each[0]]) for row in rows], shown.type)
                    for each, shown in zip(converts, reading.shown, strict=True)
                ],
            )


def _convert(reading: _Reading, held: pa.DataType, kind: IcebergType) -> _Convert:
    """fastavro's values -> those from which Arrow makes Spark's type."""
    convert = _same
    if isinstance(kind, StructType):
        there = list(cast(pa.StructType, held))
        parts = [
            (stored_name(inner), there[place].name, _convert(reading, there[place].type, inner.field_type))
            for inner in kind.fields
            if (place := reading.place(there, inner)) is not None
        ]
        convert = lambda value: {name: part(value[stored]) for name, stored, part in parts}  # noqa: E731
    elif isinstance(kind, ListType):
        element = _convert(reading, cast(Any, held).value_type, kind.element_type)
        convert = lambda value: [element(each) for each in value]  # noqa: E731
    elif isinstance(kind, MapType):
        key = _convert(reading, cast(Any, held).key_type, kind.key_type)
        item = _convert(reading, cast(Any, held).item_type, kind.value_type)
        convert = lambda value: [(key(k), item(v)) for k, v in _entries(value)]  # noqa: E731
    elif isinstance(kind, TimeType):
        convert = _micros_of_day
    return lambda value: None if value is None else convert(value)


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of Avro's map, or of an array of records of a key and a value."""
    return value.items() if isinstance(value, dict) else (tuple(entry.values()) for entry in value)


def _same(value: Any) -> Any:
    return value


def _micros_of_day(value: Any) -> Any:
    if not isinstance(value, time):
        return value
    return ((value.hour * 60 + value.minute) * 60 + value.second) * _MICROS + value.microsecond
