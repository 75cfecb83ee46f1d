"""A version of a Paimon table without keys -> Spark DataFrames: Spark's Parquet reader, an anti-join for vectors.

Shares metadata and the vector codec with the other rooms, but no code that rewrites, reads columns or verifies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot, Schemas, load, read_schemas
from nightkeep.formats.paimon.metadata.snapshot_files import digest, snapshot_ids
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.spark.data_files import PaimonStoredFile, spark_type, stored_rows, times_alike, uncompared
from nightkeep.formats.paimon.spark.deletion_vectors import without_deleted
from nightkeep.formats.paimon.spark.statistics_check import misstated
from nightkeep.model import Address, UnitKey, View
from nightkeep.spark.stored_files import no_rows, without_true
from nightkeep.spark.view import Side, TableVersion, UnitState, column, connect
from nightkeep.storage import open_storage


class AppendView:
    """The check's view of a table without keys. A unit is a bucket. Versions are read once and cached."""

    published: Final = View.RAW
    """Both views are the same: no row replaces another, and vectors are part of a version."""
    compares_with_parent: Final = True
    """Appends of others are visible at once, so only the version directly before a commit can be compared with it."""
    keys: Final[tuple[str, ...]] = ()

    def __init__(self, address: Address, spark: SparkSession) -> None:
        self._address, self._spark = address, spark
        self._storage = open_storage(address.location)
        connect(spark, self._storage)
        by_id = read_schemas(self._storage)
        self._schemas = Schemas(by_id[max(by_id)], by_id)
        self._snapshots: dict[int, PaimonSnapshot] = {}

    @property
    def table(self) -> PaimonSchema:
        return self._schemas.current

    @property
    def schema(self) -> T.StructType:
        return T.StructType([T.StructField(f.name, spark_type(f.type)) for f in self.table.fields])

    @property
    def notes(self) -> tuple[str, ...]:
        return uncompared(self.table)

    def latest(self) -> int:
        ids = snapshot_ids(self._storage)
        if not ids:
            raise MissingFile(f"{self._storage.root}/snapshot", "a snapshot of a Paimon table", "none")
        return ids[-1]

    def version(self, number: int) -> TableVersion | None:
        name = f"snapshot/snapshot-{number}"
        if not self._storage.exists(name):
            return None
        snapshot = load(self._address, self._storage, name, schemas=self._schemas)
        self._snapshots[number] = snapshot
        kind = str(snapshot.raw["commitKind"])
        named = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in snapshot.delta_entries}
        return TableVersion(
            number=number,
            parent=number - 1,
            author=str(snapshot.raw["commitUser"]),
            changes_rows=None if kind == "COMPACT" or snapshot.deletes else f"its commit is of kind {kind}",
            units={unit.key: _state(unit) for unit in snapshot.units},
            touched=frozenset(u.key for u in snapshot.units if (u.partition_bytes, u.key.bucket) in named),
            rows_stated=int(str(snapshot.raw["totalRecordCount"])),
            rows_listed=sum(file.rows for unit in snapshot.units for file in unit.files),
            deletes=snapshot.deletes,
            identity=snapshot.identity,
        )

    def digest(self, number: int) -> str | None:
        return digest(self._storage, number)

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        files = self._files(side.version, units)
        if not files:
            return no_rows(self._spark, self.schema, payload)
        stored = times_alike(stored_rows(self._spark, self._storage, self._schemas, files), self.table)
        if side.deleted is not None:
            table = [F.col(column(place)).alias(field.name) for place, field in enumerate(self.table.fields)]
            stored = without_true(stored, table, side.deleted)
        values = [value.alias(name) for name, value in payload.items()]
        live = without_deleted(self._spark, self._storage, stored.select("unit", "position", *values), files)
        return live.select("unit", F.expr("true").alias("sound"), *payload)

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        before = {key: {file.name for file in unit.files} for key, unit in self._snapshots[since].buckets.items()}
        files = self._files(version, units)
        fresh = [file for file in files if file.file.name not in before.get(units[file.unit], set())]
        if not fresh:
            return {}
        stored = stored_rows(self._spark, self._storage, self._schemas, fresh)
        return {units[place]: count for place, count in misstated(stored, self._schemas, fresh).items()}

    def untold(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """None: streaming readers of a table without keys follow its commits, and no changelog."""
        return {}

    def _files(self, version: int, units: Sequence[UnitKey]) -> list[PaimonStoredFile]:
        held = self._snapshots[version].buckets
        shown = ((place, held[key], file) for place, key in enumerate(units) if key in held for file in held[key].files)
        return [PaimonStoredFile(number, *location) for number, location in enumerate(shown)]


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
