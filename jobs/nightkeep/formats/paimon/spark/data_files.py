"""Data files -> a DataFrame of stored rows under the current schema. Parquet is read by Spark's own reader.

Files of older schemas are mapped by field id. Spark has no nanoseconds: TIMESTAMP(7..9) becomes microseconds, rounded
down, however the file stores it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, Schemas
from nightkeep.formats.paimon.metadata.snapshot_order import file_sequence
from nightkeep.formats.paimon.metadata.type_changes import is_converted
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.spark.avro_files import avro_rows
from nightkeep.formats.paimon.spark.nested_values import nested_text, stored_type
from nightkeep.formats.paimon.spark.stored_times import StoredTimes, from_bare, is_bare, is_finer_than_spark, times_of
from nightkeep.spark.orc_files import LABEL, ROW_INDEX, orc_rows
from nightkeep.spark.releases import frame_of
from nightkeep.spark.shared_files import SHOWN, shared
from nightkeep.spark.stored_files import packed, with_file_facts
from nightkeep.spark.view import column, comparable, location, spelling
from nightkeep.storage import Storage

SEQUENCE, KIND, KEY_PREFIX = "_SEQUENCE_NUMBER", "_VALUE_KIND", "_KEY_"
LIVE_KINDS = (0, 2)
"""Row kinds that add: +I and +U of RowKind.java."""
_PARQUET, _ORC = "parquet", "orc"


@dataclass(frozen=True, slots=True)
class PaimonStoredFile:
    """A data file to read. `number` identifies it in positions; `unit` is the index of its bucket among the units.
    `shown`: the bits of the versions that hold it."""

    number: int
    unit: int
    bucket: Bucket
    file: PaimonDataFile
    shown: int = 1

    @property
    def path(self) -> str:
        return self.bucket.path(self.file)


Placed = tuple[int, Bucket, PaimonDataFile]
"""A file with the index of its bucket among the units, and the bucket."""


def numbered_files(placed: Iterable[Placed]) -> list[PaimonStoredFile]:
    """Files of one version to read."""
    return shared_files([list(placed)])[0]


def shared_files(sides: Sequence[Sequence[Placed]]) -> list[list[PaimonStoredFile]]:
    """Files of versions to read. A file that several hold has one number, whatever its level in each."""

    def identity(held: tuple[Bucket, PaimonDataFile]) -> Hashable:
        bucket, file = held
        return (bucket.path(file), file.schema_id, file.max_sequence, file_sequence(file, bucket.schemas.current))

    numbered = shared([[(unit, (bucket, file)) for unit, bucket, file in held] for held in sides], identity)
    return [[PaimonStoredFile(each.number, each.unit, *each.file, each.shown) for each in held] for held in numbered]


def spark_type(kind: PaimonType) -> T.DataType:
    """The Spark type of a column's logical values; TIME is an int of milliseconds, a nested value a text."""
    if kind.is_nested:
        return T.StringType()
    return stored_type(kind)


def times_alike(rows: DataFrame, schema: PaimonSchema) -> DataFrame:
    """The rows of `stored_rows` with times before 1970 made equal in columns of nanoseconds.

    Java stores them as INT96 with negative nanoseconds of the day. Spark divides those towards zero, so that it shows
    another microsecond than for the same time in an INT64.
    """
    epoch = F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00"))
    columns = {
        column(i): F.when(F.col(column(i)) >= epoch.cast(spark_type(field.type)), F.col(column(i))).when(
            F.col(column(i)).isNotNull(), epoch.cast(spark_type(field.type))
        )
        for i, field in enumerate(schema.fields)
        if is_finer_than_spark(field.type)
    }
    return rows.withColumns(columns) if columns else rows


def uncompared(schema: PaimonSchema) -> tuple[str, ...]:
    """Sentences on what Spark cannot compare exactly."""
    fine = [field.name for field in schema.fields if is_finer_than_spark(field.type)]
    if not fine:
        return ()
    return (f"nanoseconds of {', '.join(fine)}, and times of it before 1970, are not compared, as Spark reads neither",)


def stored_rows(
    spark: SparkSession, storage: Storage, schemas: Schemas, files: Sequence[PaimonStoredFile]
) -> DataFrame:
    """Every stored row of `files`, rows hidden by vectors included.

    Columns: `unit`, SHOWN, `level`, `newest` (the file's highest sequence number), `position` (file and row as one
    long), `k0`.. (stored keys, comparable), `sequence`, `kind`, and the schema's columns as `column(i)`. Sequence
    and kind are null in a table without keys.
    """
    parquet = [(file.path, file.file.schema_id) for file in files if format_of(file.file.name) == _PARQUET]
    times = times_of(storage, parquet, schemas)
    groups: defaultdict[tuple[int, str, StoredTimes], list[PaimonStoredFile]] = defaultdict(list)
    for file in files:
        alike = (file.file.schema_id, format_of(file.file.name), times.get(file.path, StoredTimes()))
        groups[alike].append(file)
    frames = [_Reader(spark, storage, schemas, *alike).read(group) for alike, group in groups.items()]
    return reduce(DataFrame.union, frames)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads files of one schema and format that store timestamps in the same way."""

    spark: SparkSession
    storage: Storage
    schemas: Schemas
    schema_id: int
    file_format: str
    times: StoredTimes

    def read(self, files: Sequence[PaimonStoredFile]) -> DataFrame:
        keys = [self._key(i, name) for i, name in enumerate(self.schemas.current.trimmed_keys)]
        values = [self._value(i, field) for i, field in enumerate(self.schemas.current.fields)]
        columns = [*keys, F.col(SEQUENCE).alias("sequence"), F.col(KIND).alias("kind"), *values]
        described = self._described(files)
        if self.file_format == _PARQUET:
            rows = with_file_facts(self._read_by_spark(files, columns), described, "file_name")
        else:
            facts = F.broadcast(described.drop("file_name"))
            rows = self._read_numbered(files, columns).join(facts, on="file", how="inner")
        return rows.select(
            "unit",
            SHOWN,
            "level",
            "newest",
            packed(F.col("file"), F.col("row_index")).alias("position"),
            *(f"k{i}" for i in range(len(keys))),
            F.coalesce("file_sequence", "sequence").alias("sequence"),
            "kind",
            *(column(i) for i in range(len(values))),
        )

    def _read_by_spark(self, files: Sequence[PaimonStoredFile], columns: Sequence[Column]) -> DataFrame:
        # Of two versions, a file may have other metadata in each. Its rows are read once all the same.
        locations = dict.fromkeys(location(self.storage.root, file.path) for file in files)
        return (
            self.spark.read.schema(self._stored_schema())
            .parquet(*locations)
            .select(
                F.col("_metadata.file_name").alias("file_name"),
                F.col("_metadata.row_index").alias("row_index"),
                *columns,
            )
        )

    def _read_numbered(self, files: Sequence[PaimonStoredFile], columns: Sequence[Column]) -> DataFrame:
        keys = [self._held(field) for field in self.schemas.current.select(self.schemas.current.trimmed_keys)]
        stored = [
            *((KEY_PREFIX + field.name, field.type) for field in keys if field),
            *(_SYSTEM if self.schemas.current.primary_keys else ()),
            *((field.name, field.type) for field in self._written().fields),
        ]
        if self.file_format == _ORC:
            # A thin file has no columns of keys.
            required = [name for name, _ in stored if not name.startswith(KEY_PREFIX)]
            located = [(str(file.number), spelling(self.storage.root, file.path)) for file in files]
            rows = orc_rows(self.spark, located, self._stored_schema(), required=required)
        else:
            paths = [(file.number, file.path) for file in files]
            rows = avro_rows(self.spark, self.storage, paths, stored, self._stored_schema())
        number, row = F.col(f"`{LABEL}`").cast("int"), F.col(f"`{ROW_INDEX}`")
        return rows.select(number.alias("file"), row.alias("row_index"), *columns)

    def _described(self, files: Sequence[PaimonStoredFile]) -> DataFrame:
        # Spark returns file names in URI spelling.
        table = pa.table(
            {
                "file_name": [quote(f.file.name, safe="!$&'()*+,;=:@") for f in files],
                "file": pa.array([f.number for f in files], pa.int32()),
                "unit": pa.array([f.unit for f in files], pa.int32()),
                SHOWN: pa.array([f.shown for f in files], pa.int32()),
                "level": pa.array([f.file.level for f in files], pa.int32()),
                "newest": pa.array([f.file.max_sequence for f in files], pa.int64()),
                "file_sequence": pa.array([file_sequence(f.file, self.schemas.current) for f in files], pa.int64()),
            }
        )
        return frame_of(self.spark, table)

    def _stored_schema(self) -> T.StructType:
        written = self._written()
        keys = [self._held(field) for field in self.schemas.current.select(self.schemas.current.trimmed_keys)]
        return T.StructType(
            [
                *(T.StructField(KEY_PREFIX + f.name, self._stored_type(f, KEY_PREFIX)) for f in keys if f),
                T.StructField(SEQUENCE, T.LongType()),
                T.StructField(KIND, T.ByteType()),
                *(T.StructField(f.name, self._stored_type(f)) for f in written.fields),
            ]
        )

    def _stored_type(self, field: PaimonField, prefix: str = "") -> T.DataType:
        if self.file_format != _PARQUET or field.type.is_nested:
            return stored_type(field.type, self.times)
        if prefix + field.name in self.times.nanoseconds or is_bare(field.type, self.times):
            return T.LongType()
        # Spark reads INT96 as an instant. In UTC, its microseconds are those of the local time.
        return T.TimestampType() if is_finer_than_spark(field.type) else spark_type(field.type)

    def _key(self, position: int, name: str) -> Column:
        field = self.schemas.current.field(name)
        # A thin file (data-file.thin-mode) stores keys as values only.
        stored = F.coalesce(self._read(field, KEY_PREFIX), self._read(field))
        return comparable(stored, spark_type(field.type)).alias(f"k{position}")

    def _value(self, position: int, field: PaimonField) -> Column:
        return self._read(field).alias(column(position))

    def _read(self, field: PaimonField, prefix: str = "") -> Column:
        """The column under the current schema. Nulls if the file is older than the column."""
        held = self._held(field)
        if held is None:
            return F.lit(None).cast(spark_type(field.type))
        stored = F.col(f"`{(prefix + held.name).replace('`', '``')}`")
        if field.type.is_nested:
            return nested_text(stored, held.type, field.type, self.times)
        if prefix + held.name in self.times.nanoseconds:
            stored = F.timestamp_micros(_divided_down(stored))
        elif is_bare(held.type, self.times):
            stored = from_bare(stored, held.type)
        if self.file_format == _ORC and held.type.root is TypeRoot.CHAR:
            # Blanks at the end are of no account there.
            stored = F.rtrim(stored)
        return stored.cast(spark_type(field.type))

    def _held(self, field: PaimonField) -> PaimonField | None:
        """The field with the same id in the file's schema. Raises if its change of type is not one that we handle."""
        held = next((f for f in self._written().fields if f.id == field.id), None)
        if held is not None and is_converted(held.type, field.type):
            raise RefusedTable(
                f"schema {self.schema_id}",
                f"column {field.name} was written as {held.type} and is now {field.type}",
                "rewrite its files with the engine that changed the type",
            )
        return held

    def _written(self) -> PaimonSchema:
        if self.schema_id not in self.schemas.by_id:
            raise CorruptMetadata(
                f"schema {self.schema_id}", f"one of schemas {sorted(self.schemas.by_id)}", "none of that id"
            )
        return self.schemas.by_id[self.schema_id]


def _divided_down(nanos: Column) -> Column:
    return F.call_function("div", nanos - F.pmod(nanos, F.lit(1000)), F.lit(1000))


_SYSTEM = ((SEQUENCE, PaimonType(TypeRoot.BIGINT)), (KIND, PaimonType(TypeRoot.TINYINT)))
"""Columns that files have of tables with keys."""
