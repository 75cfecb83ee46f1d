"""A version of a Paimon table without keys -> Spark DataFrames: Spark's Parquet reader, an anti-join for vectors.

Shares metadata and the vector codec with the other rooms, but no code that rewrites, reads columns or verifies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.row_changes import row_change
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, keeps_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.spark.data_files import (
    PaimonStoredFile,
    numbered_files,
    shared_files,
    stored_rows,
    times_alike,
    uncompared,
)
from nightkeep.formats.paimon.spark.deletion_vectors import vector_positions, without_deleted
from nightkeep.formats.paimon.spark.statistics_check import misstated
from nightkeep.formats.paimon.spark.versions import PaimonVersions
from nightkeep.model import Address, UnitKey, View
from nightkeep.spark.shared_files import SHOWN, hidden_at, read_apart, shown_by_some
from nightkeep.spark.stored_files import no_rows, with_set, with_truth, without_true
from nightkeep.spark.view import Side, TableVersion, UnitState, column

_IS_SET: Final = "is set"


class AppendView:
    """The check's view of a table without keys. A unit is a bucket. Versions are read once and cached."""

    published: Final = View.RAW
    """Both views are the same: no row replaces another, and vectors are part of a version."""
    compares_with_parent: Final = True
    """Appends of others are visible at once, so only the version directly before a commit can be compared with it."""
    keys: Final[tuple[str, ...]] = ()
    declared_keys: Final[tuple[str, ...]] = ()

    def __init__(self, address: Address, spark: SparkSession) -> None:
        self._spark, self._versions = spark, PaimonVersions(address, spark)

    @property
    def table(self) -> PaimonSchema:
        return self._versions.table

    @property
    def schema(self) -> T.StructType:
        return self._versions.schema

    @property
    def notes(self) -> tuple[str, ...]:
        return uncompared(self.table)

    @property
    def silent(self) -> Mapping[str, str]:
        return {
            "distinct_keys": "the table has no primary key",
            "unsound": "rows of a table without primary key are stored once, and all of them are live",
            "unreported": "streaming readers of a table without primary key follow its commits, and no changelog",
        }

    def latest(self) -> int:
        return self._versions.latest()

    def version(self, number: int) -> TableVersion | None:
        version = self._versions.read(number, _state)
        if version is None:
            return None
        change = row_change(self._versions.snapshots[number].raw)
        if change is None:
            return version
        return replace(version, changes_rows=None, deletes=change.condition, sets=change.sets)

    def digest(self, number: int) -> str | None:
        return self._versions.digest(number)

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        files = self._files(side.version, units)
        if not files:
            return no_rows(self._spark, self.schema, payload)
        stored = times_alike(
            stored_rows(self._spark, self._versions.storage, self._versions.schemas, files), self.table
        )
        table = [F.col(name).alias(table_name) for table_name, name in self._named().items()]
        if side.deleted is not None and not side.sets:
            stored = without_true(stored, table, side.deleted)
        values = [value.alias(name) for name, value in payload.items()]
        if keeps_order(self.table):
            live = without_deleted(self._spark, self._versions.storage, stored, files)
            return self._placed(live, table, side).select("unit", F.expr("true").alias("sound"), "place", *values)
        if side.deleted is not None and side.sets:
            # Vectors first: for a row that is gone, an expression may have no value.
            live = without_deleted(self._spark, self._versions.storage, stored, files)
            live = with_set(live, self._named(), side.deleted, side.sets).select("unit", *values)
        else:
            shown = stored.select("unit", "position", *values)
            live = without_deleted(self._spark, self._versions.storage, shown, files)
        return live.select("unit", F.expr("true").alias("sound"), *payload)

    def shown(self, sides: Sequence[Side], units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        held = shared_files([list(self._versions.placed(side.version, units)) for side in sides])
        files = {file.number: file for own in held for file in own}
        if keeps_order(self.table) or any(side.deleted is not None for side in sides) or not files:
            return read_apart([self.rows(side, units, payload=payload) for side in sides])
        stored = stored_rows(self._spark, self._versions.storage, self._versions.schemas, list(files.values()))
        values = [value.alias(name) for name, value in payload.items()]
        rows = times_alike(stored, self.table).select("unit", "position", SHOWN, *values)
        for number, own in enumerate(held):
            deleted = vector_positions(self._spark, self._versions.storage, own)
            rows = rows if deleted is None else hidden_at(rows, deleted, number)
        return shown_by_some(rows).select("unit", F.expr("true").alias("sound"), SHOWN, *payload)

    def _placed(self, live: DataFrame, table: Sequence[Column], side: Side) -> DataFrame:
        """Live rows with their places in the order of reading. Rows that an update sets are written behind others."""
        if side.deleted is None or not side.sets:
            return live.withColumn("place", _place("position"))
        marked = with_truth(live, table, side.deleted, _IS_SET)
        placed = marked.withColumn("place", _place(_IS_SET, "position"))
        return with_set(placed, self._named(), side.deleted, side.sets)

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        before = {
            key: {file.name for file in unit.files} for key, unit in self._versions.snapshots[since].by_key.items()
        }
        files = self._files(version, units)
        fresh = [file for file in files if file.file.name not in before.get(units[file.unit], set())]
        if not fresh:
            return {}
        stored = stored_rows(self._spark, self._versions.storage, self._versions.schemas, fresh)
        return {units[place]: count for place, count in misstated(stored, self._versions.schemas, fresh).items()}

    def doubled(self, sides: Sequence[Side], units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """None: readers merge by no key."""
        return {}

    def unreported(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """None: streaming readers of a table without keys follow its commits, and no changelog."""
        return {}

    def _named(self) -> Mapping[str, str]:
        """The names of the table's columns in frames, by their own names."""
        return {field.name: column(place) for place, field in enumerate(self.table.fields)}

    def _files(self, version: int, units: Sequence[UnitKey]) -> list[PaimonStoredFile]:
        return numbered_files(self._versions.placed(version, units))


def _place(*order: str) -> Column:
    return F.row_number().over(Window.partitionBy("unit").orderBy(*order))


def _state(unit: Bucket) -> UnitState:
    vectors = {w.data_file: (r["_FILE_NAME"], w) for r in unit.index_records for w in vector_ranges(r)}
    return UnitState(
        identity=frozenset((file.name, vectors.get(file.name)) for file in unit.files),
        bytes=sum(file.bytes for file in unit.files),
        rows=_rows(unit),
        waiting=frozenset(),
    )


def _rows(unit: Bucket) -> int | None:
    """The live rows, by metadata alone. None if a vector's cardinality is not recorded."""
    rows = {file.name: file.rows for file in unit.files}
    deleted = [vector.cardinality for vector in unit.vectors if vector.data_file in rows]
    recorded = [count for count in deleted if count is not None]
    return sum(rows.values()) - sum(recorded) if len(recorded) == len(deleted) else None
