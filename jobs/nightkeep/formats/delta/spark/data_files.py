"""Data files -> a DataFrame of every row they store. Read by Spark's own Parquet reader.

Partition values, the file's number and the values for row tracking are in a small frame, joined by the file's path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.delta.metadata.actions import text_map
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.spark.schema import DeltaColumns, is_nested, quoted
from nightkeep.spark.query_settings import kept_active
from nightkeep.spark.releases import frame_of, metadata_column
from nightkeep.spark.session import session_beside
from nightkeep.spark.shared_files import SHOWN, hidden_where
from nightkeep.spark.stored_files import ROW_BITS, StoredFile, listed_paths, packed, with_file_facts, with_truth
from nightkeep.spark.view import column, location
from nightkeep.storage import Storage

_IS_TRUE: Final = "nightkeep-is-true"
ROW_ID, COMMIT_VERSION = "_metadata.row_id", "_metadata.row_commit_version"
"""delta-spark's names of the two columns of row tracking."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The columns that versions are compared by, in order: the table's, and those of row tracking if `tracks`."""

    columns: DeltaColumns
    tracks: bool

    @property
    def schema(self) -> T.StructType:
        """The schema of the comparison. Nested columns are text; void columns are text too, and null."""
        table_fields = [T.StructField(f.name, self._type(f.dataType)) for f in self.columns.table.fields]
        ids = [T.StructField(name, T.LongType()) for name in (ROW_ID, COMMIT_VERSION) if self.tracks]
        return T.StructType([*table_fields, *ids])

    def _type(self, kind: T.DataType) -> T.DataType:
        return T.StringType() if is_nested(kind) or isinstance(kind, T.NullType) else kind


@dataclass(frozen=True, slots=True)
class DeltaStoredRows:
    """Every stored row of some files of one version, rows hidden by vectors included.

    `frame` has `unit`, `file_number`, `position` (file and row as one long), SHOWN, and the table's columns under
    generated names, because theirs may clash. `values` maps physical names to generated ones.
    """

    columns: DeltaColumns
    frame: DataFrame
    values: Mapping[str, str]

    def value(self, field: T.StructField) -> Column:
        """A column as stored in this version: a nested one has physical names inside, a void one is null."""
        if isinstance(field.dataType, T.NullType):
            return F.lit(None).cast("string")
        return F.col(self.values[self.columns.physical(field)])

    def without(self, conditions: Sequence[str | None]) -> DataFrame:
        """The frame, of which version `n` does not show the rows for which its condition on the table's own columns,
        `conditions[n]`, is true."""
        table = [self.value(f).cast(f.dataType).alias(f.name) for f in self.columns.table.fields]
        rows = self.frame
        for side, condition in enumerate(conditions):
            if condition is not None:
                marked = with_truth(rows, table, condition, _IS_TRUE)
                rows = hidden_where(marked, F.col(_IS_TRUE), side).drop(_IS_TRUE)
        return rows

    def compared(self, basis: Compared) -> list[Column]:
        """Every column of `basis` as column(i), whatever its name or type in this version."""
        own = {self.columns.physical(field): field for field in self.columns.table.fields}
        fields = [own.get(basis.columns.physical(field)) for field in basis.columns.table.fields]
        values = [self._cast(field, kind.dataType) for field, kind in zip(fields, basis.schema.fields, strict=False)]
        tracked = self._tracked() if basis.tracks else []
        return [value.alias(column(i)) for i, value in enumerate([*values, *tracked])]

    def _cast(self, field: T.StructField | None, kind: T.DataType) -> Column:
        if field is None:
            return F.lit(None).cast(kind)
        value = self.value(field)
        return (self.columns.text(value, field.dataType) if is_nested(field.dataType) else value).cast(kind)

    def _tracked(self) -> list[Column]:
        row_id, commit_version = (F.col(self.values[name]) for name in self.columns.tracking)
        row = F.col("position").bitwiseAND(F.lit((1 << ROW_BITS) - 1))
        return [
            F.coalesce(row_id, F.col("base_row_id") + row),
            F.coalesce(commit_version, F.col("default_commit_version")),
        ]


def stored_rows(
    spark: SparkSession, storage: Storage, columns: DeltaColumns, files: Sequence[StoredFile[DeltaDataFile]]
) -> DeltaStoredRows:
    """The stored rows of `files`, at least one. Spark reads only the columns that the query selects."""
    schema = columns.stored()
    # Of two versions, a file may have another partition or other row ids in each. Its rows are read once all the same.
    read = spark.read.schema(schema).parquet(*dict.fromkeys(location(storage.root, f.file.name) for f in files))
    values = {field.name: f"stored_{i}" for i, field in enumerate(schema.fields)}
    # Not selected by name, because a table may have a column called _metadata.
    metadata = metadata_column(read, "_metadata")
    placed = read.select(
        metadata["file_path"].alias("file_path"),
        metadata["row_index"].alias("row_index"),
        *(read[quoted(name)].alias(alias) for name, alias in values.items()),
    )
    paths = listed_paths(read, ((storage.root, file.file.name) for file in files))
    described, partition = _described(spark, columns, files, paths)
    joined = with_file_facts(placed, described, "file_path")
    position = packed(F.col("file_number"), F.col("row_index")).alias("position")
    return DeltaStoredRows(columns, joined.select("*", position), {**values, **partition})


def _described(
    spark: SparkSession, columns: DeltaColumns, files: Sequence[StoredFile[DeltaDataFile]], paths: Sequence[str]
) -> tuple[DataFrame, Mapping[str, str]]:
    """A frame with a row per file, and its partition columns by physical name. Spark's casts type the values."""
    fields = [field for field in columns.table.fields if field.name in columns.partition]
    names = {columns.physical(field): f"partition_{i}" for i, field in enumerate(fields)}
    table = pa.table(
        {
            "file_path": pa.array(paths, pa.string()),
            "file_number": pa.array([f.number for f in files], pa.int32()),
            "unit": pa.array([f.unit for f in files], pa.int32()),
            SHOWN: pa.array([f.shown for f in files], pa.int32()),
            "base_row_id": pa.array([f.file.raw.get("baseRowId") for f in files], pa.int64()),
            "default_commit_version": pa.array([f.file.raw.get("defaultRowCommitVersion") for f in files], pa.int64()),
            **{
                alias: pa.array([_text(file.file, name) for file in files], pa.string())
                for name, alias in names.items()
            },
        }
    )
    typed = {names[columns.physical(f)]: F.col(names[columns.physical(f)]).cast(f.dataType) for f in fields}
    if not typed:
        return frame_of(spark, table), names
    # delta-spark casts without ANSI mode, in which a text that is no value is null. The mode is that of a session, and
    # other threads plan queries in this one.
    lenient = session_beside(spark)
    lenient.conf.set("spark.sql.ansi.enabled", "false")
    with kept_active():
        return frame_of(lenient, table).withColumns(typed), names


def _text(file: DeltaDataFile, physical: str) -> str | None:
    return text_map(file.raw, "partitionValues", subject=file.path).get(physical)
