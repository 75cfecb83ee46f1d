"""A Paimon table's store -> its versions as the check reads them, of tables with and without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.metadata.branch import as_branch, location_and_branch
from nightkeep.formats.paimon.metadata.own_commits import expiry_clock
from nightkeep.formats.paimon.metadata.record_values import values_of
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import (
    Bucket,
    PaimonDataFile,
    PaimonSnapshot,
    Schemas,
    load,
    read_schemas,
)
from nightkeep.formats.paimon.metadata.snapshot_files import digest, snapshot_ids
from nightkeep.formats.paimon.spark.data_files import spark_type
from nightkeep.model import Address, UnitKey
from nightkeep.spark.view import TableVersion, UnitState, connect
from nightkeep.storage import open_storage, whole_store


class PaimonVersions:
    """The store of a table, its schemas, and its versions by their numbers. `snapshots` has those that were read."""

    def __init__(self, address: Address, spark: SparkSession) -> None:
        self._address = address
        folder, branch = location_and_branch(address.location)
        self.storage = as_branch(open_storage(folder), branch)
        connect(spark, whole_store(self.storage))
        by_id = read_schemas(self.storage)
        self.schemas = Schemas(by_id[max(by_id)], by_id)
        self.snapshots: dict[int, PaimonSnapshot] = {}

    @property
    def table(self) -> PaimonSchema:
        return self.schemas.current

    @property
    def schema(self) -> T.StructType:
        return T.StructType([T.StructField(f.name, spark_type(f.type)) for f in self.table.fields])

    def latest(self) -> int:
        """Raises MissingFile for a table without a version."""
        ids = snapshot_ids(self.storage)
        if not ids:
            raise MissingFile(f"{self.storage.root}/snapshot", "a snapshot of a Paimon table", "none")
        return ids[-1]

    def read(self, number: int, state: Callable[[Bucket], UnitState]) -> TableVersion | None:
        """The version, with the `state` of each bucket; None if it is gone."""
        name = f"snapshot/snapshot-{number}"
        if not self.storage.exists(name):
            return None
        snapshot = load(self._address, self.storage, name, schemas=self.schemas)
        self.snapshots[number] = snapshot
        kind = str(snapshot.raw["commitKind"])
        named = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in snapshot.delta_entries}
        return TableVersion(
            number=number,
            parent=number - 1,
            author=str(snapshot.raw["commitUser"]),
            changes_rows=None if kind == "COMPACT" else f"its commit is of kind {kind}",
            units={unit.key: state(unit) for unit in snapshot.units},
            touched=frozenset(u.key for u in snapshot.units if (u.partition_bytes, u.key.bucket) in named),
            rows_stated=int(str(snapshot.raw["totalRecordCount"])),
            rows_listed=sum(file.rows for unit in snapshot.units for file in unit.files),
            expiry_clock=expiry_clock(snapshot.raw),
            identity=snapshot.identity,
        )

    def placed(self, number: int, units: Sequence[UnitKey]) -> Iterator[tuple[int, Bucket, PaimonDataFile]]:
        """The files of these units in a version that was read, each with the index of its unit, and its bucket."""
        held = self.snapshots[number].by_key
        buckets = [(place, held[key]) for place, key in enumerate(units) if key in held]
        return ((place, bucket, file) for place, bucket in buckets for file in bucket.files)

    def digest(self, number: int) -> str | None:
        return digest(self.storage, number)


def lasting_facts(file: PaimonDataFile) -> Mapping[str, object]:
    """The metadata of a file that stays the same when it is upgraded: all but its level."""
    return {key: value for key, value in values_of(file.record).items() if key != "_LEVEL"}


def published_rows(unit: Bucket) -> int | None:
    """The live rows above level 0, by metadata alone. None if a vector's cardinality is not recorded."""
    lifted = {file.name: file.rows for file in unit.files if file.level > 0}
    deleted = [vector.cardinality for vector in unit.vectors if vector.data_file in lifted]
    recorded = [count for count in deleted if count is not None]
    return sum(lifted.values()) - sum(recorded) if len(recorded) == len(deleted) else None
