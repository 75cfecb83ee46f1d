"""New files of a version -> the number of columns with wrong statistics, counted by Spark.

Iceberg's statistics are of all rows of a file, deleted ones included (spec, data_file).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import Final

import pyarrow as pa
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
)
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import from_bytes
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.variants import VariantType
from nightkeep.formats.iceberg.spark.data_files import IcebergColumns, alike, read_files
from nightkeep.formats.iceberg.spark.deletes import PATH, POSITION
from nightkeep.formats.iceberg.spark.schema import Names, leaves, typed, values_array
from nightkeep.model.arrow_types import Array
from nightkeep.spark.releases import frame_of
from nightkeep.spark.stored_files import StoredFile
from nightkeep.storage import Storage

_COUNTS: Final = {"value_counts": "values", "null_value_counts": "nulls", "nan_value_counts": "nans"}
_EXACT: Final = IntegerType | LongType | FloatType | DoubleType | DecimalType | DateType
"""Types whose bounds no writer cuts."""
_BOUNDS: Final = {"lower_bounds": "low", "upper_bounds": "high"}


def misstated(
    spark: SparkSession,
    storage: Storage,
    schema: IcebergSchema,
    files: Sequence[StoredFile[ContentFile]],
    deletes: Sequence[StoredFile[ContentFile]],
) -> Mapping[int, int]:
    """By number of each unit, how many columns of data files and position delete files have wrong statistics.

    A wrong row count counts as one more column.
    """
    counts: Counter[int] = Counter()
    for group in alike(storage, IcebergColumns(schema), files):
        counts.update(_wrong(spark, storage, [file for file, _ in group], schema.current.fields, group[0][1].names))
    if deletes:
        counts.update(_wrong(spark, storage, deletes, (PATH, POSITION), None))
    return counts


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column, or a field within structs, with its values. `place` makes the names of its frame columns unique."""

    place: int
    field: NestedField
    value: Column

    @property
    def kind(self) -> IcebergType:
        return self.field.field_type

    @property
    def is_ordered(self) -> bool:
        """Whether it may have bounds."""
        return not isinstance(self.kind, VariantType)

    @property
    def has_nan(self) -> bool:
        return isinstance(self.kind, FloatType | DoubleType)

    def seen(self) -> list[Column]:
        number = F.when(~F.isnan(self.value), self.value) if self.has_nan else self.value
        nans = F.count_if(F.isnan(self.value)) if self.has_nan else F.lit(0)
        counts = [F.count(self.value).alias(f"some_{self.place}"), nans.alias(f"seen_nans_{self.place}")]
        if not self.is_ordered:
            return counts
        return [*counts, F.min(number).alias(f"least_{self.place}"), F.max(number).alias(f"greatest_{self.place}")]

    def stated(self, files: Sequence[ContentFile]) -> Iterator[tuple[str, Array]]:
        for source, name in _COUNTS.items():
            counts = [file.count(source, self.field.field_id) for file in files]
            yield f"{name}_{self.place}", pa.array(counts, pa.int64())
        for source, name in _BOUNDS.items() if self.is_ordered else ():
            bounds = [self._bound(file, source) for file in files]
            yield f"{name}_{self.place}", values_array(bounds, self.kind)

    def is_wrong(self) -> Column:
        def column(name: str) -> Column:
            return F.col(f"{name}_{self.place}")

        faults = [
            column("values") != F.col("physical"),
            column("nulls") != F.col("physical") - column("some"),
            column("nans") != column("seen_nans"),
        ]
        if self.is_ordered:
            low, high = typed(column("low"), self.kind), typed(column("high"), self.kind)
            faults += [column("least") < low, column("greatest") > high]
            # Readers answer MIN and MAX from bounds that no writer cuts.
            faults += [
                bound.isNotNull() & ~bound.eqNullSafe(column(end))
                for bound, end in ((low, "least"), (high, "greatest"))
                if isinstance(self.kind, _EXACT)
            ]
        return reduce(or_, (F.coalesce(fault, F.lit(False)) for fault in faults))  # noqa: FBT003

    def _bound(self, file: ContentFile, source: str) -> object:
        data = file.bound(source, self.field.field_id)
        subject = f"{file.path}: bound of {self.field.name}"
        return None if data is None else from_bytes(self.kind, data, subject=subject)


def _wrong(
    spark: SparkSession,
    storage: Storage,
    files: Sequence[StoredFile[ContentFile]],
    fields: Sequence[NestedField],
    names: Names | None,
) -> Mapping[int, int]:
    """The number of columns with wrong statistics, by number of each unit."""
    columns = [_Leaf(place, *parts) for place, parts in enumerate(leaves(fields))]
    held = [file.file for file in files]
    read, paths = read_files(spark, storage, held, fields, names)
    seen = read.groupBy("file_path").agg(
        F.count(F.lit(1)).alias("counted"), *(column for leaf in columns for column in leaf.seen())
    )
    stated = _stated(spark, files, paths, columns).join(seen, on="file_path", how="left")
    stated = stated.withColumn("physical", F.coalesce("counted", F.lit(0)))
    faults = [F.col("physical") != F.col("rows"), *(leaf.is_wrong() for leaf in columns)]
    total = reduce(add, (F.when(fault, 1).otherwise(0) for fault in faults))
    wrong = stated.groupBy("unit").agg(F.sum(total).alias("wrong"))
    return {row["unit"]: row["wrong"] for row in wrong.collect()}


def _stated(
    spark: SparkSession, files: Sequence[StoredFile[ContentFile]], paths: Sequence[str], columns: Sequence[_Leaf]
) -> DataFrame:
    held = [file.file for file in files]
    table = pa.table(
        {
            "file_path": pa.array(paths, pa.string()),
            "unit": pa.array([file.unit for file in files], pa.int32()),
            "rows": pa.array([file.rows for file in held], pa.int64()),
            **{name: array for leaf in columns for name, array in leaf.stated(held)},
        }
    )
    return frame_of(spark, table)
