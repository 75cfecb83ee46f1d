"""Files of a version -> the number of wrong statistics that readers with filters rely on. Counted by Spark.

Spark's JSON reader parses the statistics, as it does for delta-spark's file skipping.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.spark.data_files import DeltaStoredRows, stored_rows
from nightkeep.formats.delta.spark.deletion_vectors import vector_positions
from nightkeep.formats.delta.spark.schema import DeltaColumns, quoted
from nightkeep.spark.releases import frame_of
from nightkeep.spark.stored_files import StoredFile, without_positions
from nightkeep.storage import Storage

_ORDERED = (
    T.ByteType
    | T.ShortType
    | T.IntegerType
    | T.LongType
    | T.FloatType
    | T.DoubleType
    | T.DecimalType
    | T.DateType
    | T.TimestampType
    | T.TimestampNTZType
    | T.StringType
)
_EXACT = T.ByteType | T.ShortType | T.IntegerType | T.LongType | T.DoubleType | T.DecimalType | T.DateType
"""Types whose bounds no writer cuts."""
_TIMES = T.TimestampType | T.TimestampNTZType


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column or struct field that may have statistics: its value, and its path in the statistics."""

    value: Column
    path: tuple[str, ...]
    kind: T.DataType

    def stated(self, group: str) -> Column:
        return F.col(".".join(("stated", group, *map(quoted, self.path))))


def misstated(
    spark: SparkSession, storage: Storage, columns: DeltaColumns, files: Sequence[StoredFile[DeltaDataFile]]
) -> Mapping[int, int]:
    """The number of columns of `files` with wrong statistics, by index of each unit. All files have statistics.

    Bounds and null counts are of the rows that readers see; the row count is of all rows (PROTOCOL.md, "Per-file
    Statistics"). A wrong row count counts as one more column.
    """
    stored = stored_rows(spark, storage, columns, files)
    leaves = list(_leaves(stored))
    stated = _stated(spark, files, leaves)
    spans = [span for i, leaf in enumerate(leaves) for span in _span(F.col(f"leaf_{i}"), i, leaf)]
    texts = [(i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf.kind, T.StringType)]
    bounds = [leaf.stated(f"{end}Values").alias(f"{end}_{i}") for i, leaf in texts for end in ("min", "max")]
    named = stored.frame.select(
        "file_number", "position", *(leaf.value.alias(f"leaf_{i}") for i, leaf in enumerate(leaves))
    )
    deleted = vector_positions(spark, storage, files)
    live = named if deleted is None else without_positions(named, deleted)
    if bounds:
        live = live.join(F.broadcast(stated.select("file_number", *bounds)), on="file_number")
    seen = live.groupBy("file_number").agg(F.count(F.lit(1)).alias("live"), *spans)
    if deleted is None:
        joined = stated.join(seen.withColumn("physical", F.col("live")), on="file_number", how="left")
    else:
        physical = stored.frame.groupBy("file_number").agg(F.count(F.lit(1)).alias("physical"))
        joined = stated.join(physical, on="file_number", how="left").join(seen, on="file_number", how="left")
    wrong = [_is_wrong(leaf, i) for i, leaf in enumerate(leaves)]
    rows = F.col("stated.numRecords") != F.coalesce(F.col("physical"), F.lit(0))
    total = reduce(add, (F.when(fault, 1).otherwise(0) for fault in (rows, *wrong)))
    counts = joined.groupBy("unit").agg(F.sum(total).alias("wrong"))
    return {row["unit"]: row["wrong"] for row in counts.collect()}


def _leaves(stored: DeltaStoredRows) -> Iterator[_Leaf]:
    for field in stored.columns.table.fields:
        if field.name not in stored.columns.partition:
            yield from _inside(stored, field, stored.value(field), (stored.columns.physical(field),))


def _inside(stored: DeltaStoredRows, field: T.StructField, value: Column, path: tuple[str, ...]) -> Iterator[_Leaf]:
    if isinstance(field.dataType, T.StructType):
        for inner in field.dataType.fields:
            if not isinstance(inner.dataType, T.NullType):
                name = stored.columns.physical(inner)
                yield from _inside(stored, inner, value.getField(name), (*path, name))
    elif not isinstance(field.dataType, T.NullType):
        yield _Leaf(value, path, field.dataType)


def _span(value: Column, place: int, leaf: _Leaf) -> list[Column]:
    some = F.count(value).alias(f"some_{place}")
    if not isinstance(leaf.kind, _ORDERED):
        return [some]
    if isinstance(leaf.kind, T.StringType):
        # Spark sorts all rows for the least of texts; it counts those outside of bounds as it reads.
        outside = (value < F.col(f"min_{place}")) | (value > F.col(f"max_{place}"))
        return [some, F.count_if(outside).alias(f"outside_{place}")]
    return [some, F.min(value).alias(f"least_{place}"), F.max(value).alias(f"greatest_{place}")]


def _is_wrong(leaf: _Leaf, place: int) -> Column:
    nulls, stated = F.coalesce(F.col("live") - F.col(f"some_{place}"), F.lit(0)), leaf.stated("nullCount")
    # With wide bounds, only the null counts "none" and "all" are exact: others include rows that a vector may hide.
    is_tight = F.coalesce(F.col("stated.tightBounds"), F.lit(True))  # noqa: FBT003
    all_null = (stated == F.col("stated.numRecords")) & (F.col(f"some_{place}") > 0)
    faults = [F.when(is_tight, stated != nulls).otherwise(((stated == 0) & (nulls > 0)) | all_null)]
    if isinstance(leaf.kind, T.StringType):
        faults.append(F.col(f"outside_{place}") > 0)
    elif isinstance(leaf.kind, _ORDERED):
        low, high = leaf.stated("minValues"), leaf.stated("maxValues")
        # Written as milliseconds, rounded down, so readers add one (DataSkippingReader.scala).
        high = high + F.expr("INTERVAL 1 MILLISECOND") if isinstance(leaf.kind, _TIMES) else high
        least, greatest = F.col(f"least_{place}"), F.col(f"greatest_{place}")
        faults += [least < low, greatest > high]
        if isinstance(leaf.kind, _EXACT):
            # A bound at which there is no value: readers answer MIN and MAX from tight bounds.
            ends = ((low, least), (high, greatest))
            faults += [is_tight & bound.isNotNull() & ~bound.eqNullSafe(end) for bound, end in ends]
    return reduce(or_, (F.coalesce(fault, F.lit(False)) for fault in faults))  # noqa: FBT003


def _stated(spark: SparkSession, files: Sequence[StoredFile[DeltaDataFile]], leaves: Sequence[_Leaf]) -> DataFrame:
    """A frame with a row per file: its numbers, and `stated`, its parsed statistics."""
    counted = _nested({leaf.path: T.LongType() for leaf in leaves})
    ordered = _nested({leaf.path: leaf.kind for leaf in leaves if isinstance(leaf.kind, _ORDERED)})
    kind = T.StructType(
        [
            T.StructField("numRecords", T.LongType()),
            T.StructField("tightBounds", T.BooleanType()),
            T.StructField("nullCount", counted),
            T.StructField("minValues", ordered),
            T.StructField("maxValues", ordered),
        ]
    )
    table = pa.table(
        {
            "file_number": pa.array([f.number for f in files], pa.int32()),
            "unit": pa.array([f.unit for f in files], pa.int32()),
            "stats": pa.array([f.file.stats for f in files], pa.string()),
        }
    )
    return frame_of(spark, table).select("file_number", "unit", F.from_json("stats", kind).alias("stated"))


def _nested(leaves: Mapping[tuple[str, ...], T.DataType]) -> T.StructType:
    """The struct that has each leaf at its path."""
    first = dict.fromkeys(path[0] for path in leaves)
    return T.StructType([T.StructField(name, _below(name, leaves)) for name in first])


def _below(name: str, leaves: Mapping[tuple[str, ...], T.DataType]) -> T.DataType:
    if (name,) in leaves:
        return leaves[(name,)]
    return _nested({path[1:]: kind for path, kind in leaves.items() if path[0] == name and len(path) > 1})
