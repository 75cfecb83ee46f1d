"""Data files -> a DataFrame of every stored row. Spark's own reader of Parquet, and ORC's in Java, find columns by id.

Values from manifests come from a small frame, joined by the file's path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import Final, TypeAlias

import pyarrow as pa
from pyiceberg.types import NestedField
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.locations import root_of
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.spark.avro_files import PARQUET, avro_rows
from nightkeep.formats.iceberg.spark.file_shapes import FileShape, defaults_of, shapes
from nightkeep.formats.iceberg.spark.schema import (
    LAST_UPDATED,
    ROW_ID,
    Names,
    compared,
    compared_type,
    literal,
    read_schema,
    spark_type,
    stored_name,
    stored_number,
    typed,
    values_array,
)
from nightkeep.spark.orc_files import LABEL, ROW_INDEX, orc_rows
from nightkeep.spark.releases import frame_of, metadata_column
from nightkeep.spark.shared_files import SHOWN
from nightkeep.spark.stored_files import StoredFile, listed_paths, packed, with_file_facts
from nightkeep.spark.view import column, location, spelling
from nightkeep.storage import Storage

_READING: Final[Mapping[str, str]] = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
"""Do not rebase dates before the Gregorian calendar: no writer of Iceberg used another calendar."""


@dataclass(frozen=True)
class IcebergColumns:
    """The columns of a table. `keys` are dropped columns that equality deletes still use."""

    schema: IcebergSchema
    keys: tuple[NestedField, ...] = ()

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """All fields that are read from data files."""
        lineage = (ROW_ID, LAST_UPDATED) if self.schema.has_row_lineage else ()
        return (*self.schema.current.fields, *self.keys, *lineage)

    @cached_property
    def defaults(self) -> Mapping[int, object]:
        return defaults_of(self.fields)

    @cached_property
    def identities(self) -> Mapping[int, NestedField]:
        """Fields that some spec partitions by identity, by field id."""
        numbers = {
            field.source_id
            for spec in self.schema.specs.values()
            for field in spec.fields
            if str(field.transform) == "identity"
        }
        return {number: self.schema.field(number) for number in sorted(numbers) if self._is_known(number)}

    def _is_known(self, number: int) -> bool:
        """Whether any schema has the field: a spec may outlive its source column in all schemas."""
        return any(schema.find_column_name(number) is not None for schema in self.schema.schemas.values())

    def filled(self, field: NestedField, value: Column) -> Column:
        """A field as readers see it: the partition's value, else the stored one, else the initial default, else null.

        Java's readers take the value of a column by which the file is partitioned from the manifest, even where the
        file has the column (PartitionUtil.constantsMap). `sound` is false where the two differ.
        """
        number = field.field_id
        fixed = F.col(f"fixed_{number}") if number in self.identities else F.lit(False)  # noqa: FBT003
        if number in self.identities:
            value = F.when(fixed, F.col(f"const_{number}")).otherwise(value)
        if number in self.defaults:
            default = literal(self.defaults[number], field.field_type)
            value = F.when(F.col(f"lacks_{number}") & ~fixed, default).otherwise(value)
        return value

    def sound(self) -> Column:
        """Whether a row's values equal those of its partition, for fields partitioned by identity."""
        top = {field.field_id for field in (*self.schema.current.fields, *self.keys)}
        checks = [_agrees(field) for number, field in self.identities.items() if number in top]
        return reduce(and_, checks, F.expr("true"))


def _agrees(field: NestedField) -> Column:
    value, number = F.col(stored_name(field)), field.field_id
    return ~F.col(f"fixed_{number}") | value.isNull() | value.eqNullSafe(F.col(f"const_{number}"))


@dataclass(frozen=True, slots=True)
class IcebergStoredRows:
    """Every row of some files, deleted ones included.

    `frame` has `unit`, SHOWN, `file_number`, `position` (file and row as one long), `row_index`, `sequence`,
    `first_row_id`, stored values by their field ids, and the columns that `IcebergColumns.filled` uses.
    """

    columns: IcebergColumns
    frame: DataFrame

    def compared(self, *, tracks: bool) -> list[Column]:
        """Every column as column(i); with `tracks` followed by row id and sequence number of the last change."""
        own = [
            compared(self.value(field), field.field_type, self.columns.filled)
            for field in self.columns.schema.current.fields
        ]
        return [value.alias(column(i)) for i, value in enumerate([*own, *(self._lineage() if tracks else ())])]

    def value(self, field: NestedField) -> Column:
        return self.columns.filled(field, F.col(stored_name(field)))

    def _lineage(self) -> Iterator[Column]:
        """Row lineage values: the stored ones, else inherited (spec, "Row Lineage")."""
        first = F.col("first_row_id")
        yield F.coalesce(F.col(stored_name(ROW_ID)), first + F.col("row_index"))
        yield F.coalesce(F.col(stored_name(LAST_UPDATED)), F.when(first.isNotNull(), F.col("sequence")))


def compared_schema(schema: IcebergSchema, *, tracks: bool) -> T.StructType:
    """The columns that versions are compared by, in order."""
    fields = (*schema.current.fields, *((ROW_ID, LAST_UPDATED) if tracks else ()))
    return T.StructType([T.StructField(field.name, compared_type(field.field_type)) for field in fields])


def stored_rows(
    spark: SparkSession, storage: Storage, columns: IcebergColumns, files: Sequence[StoredFile[ContentFile]]
) -> IcebergStoredRows:
    """The rows of `files`, at least one, in a frame that reads `columns`."""
    frames = [_group(spark, storage, columns, group) for group in alike(storage, columns, files)]
    frame = reduce(DataFrame.unionByName, frames)
    position = packed(F.col("file_number"), F.col("row_index"))
    return IcebergStoredRows(columns, frame.withColumn("position", position))


def alike(
    storage: Storage, columns: IcebergColumns, files: Sequence[StoredFile[ContentFile]]
) -> Iterable[Sequence[tuple[StoredFile[ContentFile], FileShape]]]:
    """Files with their shapes, in groups to read together: all files with field ids, and files with equal names."""
    file_shapes = shapes(storage, columns.schema, [file.file for file in files], columns.defaults)
    groups: dict[object, list[tuple[StoredFile[ContentFile], FileShape]]] = {}
    for pair in zip(files, file_shapes, strict=True):
        names = pair[1].names
        groups.setdefault(None if names is None else frozenset(names.items()), []).append(pair)
    return groups.values()


def read_files(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[ContentFile],
    fields: Sequence[NestedField],
    names: Names | None = None,
) -> tuple[DataFrame, list[str]]:
    """A frame of `file_path`, `row_index` and the fields by stored_name; and the files' paths in its spelling."""
    groups: dict[str, list[ContentFile]] = {}
    for file in files:
        groups.setdefault(file.format, []).append(file)
    frames, listed = [], {}
    for kind, group in groups.items():
        frame, paths = _READERS[kind](spark, storage, group, fields, names)
        frames.append(frame)
        listed[kind] = iter(paths)
    return reduce(DataFrame.unionByName, frames), [next(listed[file.format]) for file in files]


def _parquet_files(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[ContentFile],
    fields: Sequence[NestedField],
    names: Names | None,
) -> tuple[DataFrame, list[str]]:
    file_schema = read_schema(fields, names)
    read = (
        spark.read.options(**_READING)
        .schema(file_schema)
        # Of two versions, a file may be of another partition or sequence in each. Its rows are read once all the same.
        .parquet(*dict.fromkeys(location(root_of(file.path), file.name) for file in files))
    )
    # Not by name: in a file without ids a column may have the same name.
    metadata = metadata_column(read, "_metadata")
    placed = read.select(
        metadata["file_path"].alias("file_path"),
        metadata["row_index"].alias("row_index"),
        *(
            read[f"`{stored.name.replace('`', '``')}`"].cast(spark_type(field.field_type)).alias(stored_name(field))
            for stored, field in zip(file_schema.fields, fields, strict=True)
        ),
    )
    return placed, listed_paths(read, ((root_of(file.path), file.name) for file in files))


def _orc_files(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[ContentFile],
    fields: Sequence[NestedField],
    names: Names | None,
) -> tuple[DataFrame, list[str]]:
    paths = [spelling(root_of(file.path), file.name) for file in files]
    by_name = None if names is None else {stored_number(number): name for number, name in names.items()}
    types = T.StructType([T.StructField(stored_name(field), spark_type(field.field_type)) for field in fields])
    read = orc_rows(spark, [(path, path) for path in dict.fromkeys(paths)], types, by_id=names is None, names=by_name)
    return read.withColumnsRenamed({LABEL: "file_path", ROW_INDEX: "row_index"}), paths


def _avro_files(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[ContentFile],
    fields: Sequence[NestedField],
    names: Names | None,
) -> tuple[DataFrame, list[str]]:
    paths = [spelling(root_of(file.path), file.name) for file in files]
    return avro_rows(spark, storage, list(dict(zip(paths, files, strict=True)).items()), fields, names), paths


_Read: TypeAlias = Callable[
    [SparkSession, Storage, Sequence[ContentFile], Sequence[NestedField], Names | None], tuple[DataFrame, list[str]]
]
_READERS: Final[Mapping[str, _Read]] = {PARQUET: _parquet_files, "orc": _orc_files, "avro": _avro_files}


def _group(
    spark: SparkSession,
    storage: Storage,
    columns: IcebergColumns,
    group: Sequence[tuple[StoredFile[ContentFile], FileShape]],
) -> DataFrame:
    """A frame of one group of `alike`."""
    files, names = [file for file, _ in group], group[0][1].names
    read, paths = read_files(spark, storage, [file.file for file in files], columns.fields, names)
    return with_file_facts(read, _described(spark, columns, group, paths), "file_path")


def _described(
    spark: SparkSession,
    columns: IcebergColumns,
    group: Sequence[tuple[StoredFile[ContentFile], FileShape]],
    paths: Sequence[str],
) -> DataFrame:
    """A frame with one row per file: values from its manifest entry, and of its partition."""
    files = [file for file, _ in group]
    fixed = [_identities(columns.schema, file.file) for file in files]
    table = pa.table(
        {
            "file_path": pa.array(paths, pa.string()),
            "file_number": pa.array([f.number for f in files], pa.int32()),
            "unit": pa.array([f.unit for f in files], pa.int32()),
            SHOWN: pa.array([f.shown for f in files], pa.int32()),
            "sequence": pa.array([f.file.sequence_number for f in files], pa.int64()),
            "first_row_id": pa.array([f.file.first_row_id for f in files], pa.int64()),
            **{f"lacks_{n}": pa.array([n in shape.lacks for _, shape in group]) for n in columns.defaults},
            **{f"fixed_{n}": pa.array([n in known for known in fixed]) for n in columns.identities},
            **{
                f"const_{n}": values_array([known.get(n) for known in fixed], field.field_type)
                for n, field in columns.identities.items()
            },
        }
    )
    constants = {f"const_{n}": typed(F.col(f"const_{n}"), f.field_type) for n, f in columns.identities.items()}
    return frame_of(spark, table).withColumns(constants)


def _identities(schema: IcebergSchema, file: ContentFile) -> dict[int, object]:
    """Values of the columns that the file's spec partitions by identity, by field id."""
    pairs = zip(schema.spec(file.spec_id).fields, file.partition, strict=True)
    return {field.source_id: value for field, value in pairs if str(field.transform) == "identity"}
