"""Rows that readers saw before and see after a commit, and its changelog -> the number of wrong changes. By Spark.

The third implementation, beside those of the rewrite and of the gate: an outer join of both sides by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.spark.data_files import LIVE_KINDS
from nightkeep.spark.releases import arrow_of
from nightkeep.spark.view import column, comparable

_INSERT, _UPDATE_BEFORE, _UPDATE_AFTER, _DELETE = range(4)
"""Values of _VALUE_KIND on disk (RowKind.java)."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Live stored rows of a commit's units, from stored_rows: its changelog, the new rows that it upgraded, and what
    streaming readers knew before it and know after it. None where there is no file."""

    reported: DataFrame | None
    lifted: DataFrame | None
    before: DataFrame | None
    after: DataFrame | None


def lifted_files(
    before: Sequence[tuple[int, Bucket]], after: Sequence[tuple[int, Bucket]], lowest_known: int
) -> Iterator[tuple[int, Bucket, PaimonDataFile]]:
    """Files of `before` that a commit upgraded: they are below level `lowest_known`, so streaming readers did not know
    their rows, and `after` has them no more at such a level. Each comes with its bucket and the bucket's number. A
    bucket whose known files and vectors did not change yields none."""
    now = dict(after)
    for place, bucket in before:
        files = now[place].files if place in now else ()
        known = [{file.name for file in side if file.level >= lowest_known} for side in (bucket.files, files)]
        vectors = now[place].index_files if place in now else ()
        waiting = {file.name for file in files if file.level < lowest_known}
        if known[0] != known[1] or bucket.index_files != vectors:
            fresh = (file for file in bucket.files if file.level < lowest_known and file.name not in waiting)
            yield from ((place, bucket, file) for file in fresh)


def unreported(
    sides: Sides, schema: T.StructType, *, keys: Sequence[str], silent: Sequence[str] | None, once: bool
) -> Mapping[int, int]:
    """The number of changes that are missing, or that should not be there, by index of the unit.

    `keys` are the stored keys. Of a table that keeps equal rows `silent`, these are the columns that are compared.
    `once`: a key is reported once, with the kind that its row is stored with.
    """
    by = ["unit", *keys]
    frames = [sides.reported, sides.lifted, sides.before, sides.after]
    some = next((frame for frame in frames if frame is not None), None)
    if some is None:
        return {}
    reported, lifted, before, after = (some.where(F.expr("false")) if frame is None else frame for frame in frames)
    touched = lifted.select(*by).distinct()
    old, new = (
        side.where(F.col("kind").isin(*LIVE_KINDS))
        .join(touched, on=by, how="left_semi")
        .select(*by, _row(schema).alias(name), F.col("kind").alias(f"{name}_kind"))
        for side, name in ((before, "old"), (after, "new"))
    )
    changes = _first_row() if once else _changes(schema, silent)
    expected = old.join(new, on=by, how="full_outer").select(*by, F.explode(changes).alias("change"))
    found_changes = reported.select(*by, _change(F.col("kind"), _row(schema)).alias("change"))
    counted = expected.withColumn("count", F.lit(1)).union(found_changes.withColumn("count", F.lit(-1)))
    wrong = counted.groupBy(*by, "change").agg(F.sum("count").alias("count")).where(F.col("count") != 0)
    found = arrow_of(wrong.groupBy("unit").agg(F.sum(F.abs("count")).alias("count")))
    units, counts = (found.column(name).to_numpy() for name in ("unit", "count"))
    return {int(unit): int(count) for unit, count in zip(units, counts, strict=True)}


def _row(schema: T.StructType) -> Column:
    values = [comparable(F.col(column(i)), field.dataType).alias(column(i)) for i, field in enumerate(schema)]
    return F.struct(F.col("sequence"), *values)


def _change(kind: Column, row: Column) -> Column:
    return F.struct(kind.cast("int").alias("kind"), row.alias("row"))


def _first_row() -> Column:
    return F.array_compact(F.array(F.when(F.col("old").isNull(), _change(F.col("new_kind"), F.col("new")))))


def _changes(schema: T.StructType, silent: Sequence[str] | None) -> Column:
    old, new = F.col("old"), F.col("new")
    both = old.isNotNull() & new.isNotNull()
    if silent is not None:
        names = [column(schema.names.index(name)) for name in silent]
        both = both & ~reduce(and_, (old[name].eqNullSafe(new[name]) for name in names), F.expr("true"))
    each = [
        F.when(old.isNull(), _change(F.lit(_INSERT), new)),
        F.when(new.isNull(), _change(F.lit(_DELETE), old)),
        F.when(both, _change(F.lit(_UPDATE_BEFORE), old)),
        F.when(both, _change(F.lit(_UPDATE_AFTER), new)),
    ]
    return F.array_compact(F.array(*each))
