"""A Delta version -> Spark DataFrames: Spark's Parquet reader, the log's partition values, an anti-join for vectors.

Shares log replay and the vector codec with the other rooms, but no code that rewrites, reads columns or verifies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.actions import Action, parse_lines
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.log_segment import newest, segment
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.metadata.naming import commit_name
from nightkeep.formats.delta.metadata.partition import key_text, typed
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit, load
from nightkeep.formats.delta.spark.data_files import Compared, stored_rows
from nightkeep.formats.delta.spark.deletion_vectors import vector_positions
from nightkeep.formats.delta.spark.schema import DeltaColumns
from nightkeep.formats.delta.spark.statistics_check import misstated
from nightkeep.model import Address, UnitKey, View
from nightkeep.spark.shared_files import SHOWN, hidden_at, read_apart, shared, shown_by_some
from nightkeep.spark.stored_files import no_rows
from nightkeep.spark.view import Side, TableVersion, UnitState, connect
from nightkeep.storage import open_storage

_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"
"""Off by default in Spark. It has no effect if the read schema has no ids."""
_OF_ROWS: Final = ("unit", "position", SHOWN)


def open_table(address: Address, spark: SparkSession) -> DeltaView:
    """The view of the table, with its latest version's schema. Raises RefusedTable for features we do not read."""
    spark.conf.set(_BY_ID, "true")
    return DeltaView(address, spark)


class DeltaView:
    """The check's view of a table. A unit is a partition. Versions are read once and cached."""

    published: Final = View.RAW
    """Both views are the same: Delta merges nothing on read, and vectors are part of a version."""
    compares_with_parent: Final = True
    """Appends of others are visible at once, so only the version directly before a commit can be compared with it."""

    def __init__(self, address: Address, spark: SparkSession) -> None:
        self._address, self._spark = address, spark
        self._storage = open_storage(address.location)
        connect(spark, self._storage)
        self._snapshots: dict[int, DeltaSnapshot] = {}
        latest = self._snapshot(self.latest())
        self._columns = DeltaColumns.of(latest)

    @property
    def schema(self) -> T.StructType:
        """The compared columns. They include row ids and row commit versions if every version asked for has them."""
        return self._compared.schema

    @property
    def keys(self) -> tuple[str, ...]:
        """None: Delta promises no column to be unique."""
        return ()

    declared_keys: Final[tuple[str, ...]] = ()
    """None: the log has no constraint of this kind (PROTOCOL.md, "Table Features")."""

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def silent(self) -> Mapping[str, str]:
        return {
            "distinct_keys": "Delta promises no column to be unique, and check.keys names none",
            "unsound": "a value of a Delta table is stored in one place, which nothing else could contradict",
            "unreported": "a commit that changes no row reports nothing to streaming readers",
        }

    def latest(self) -> int:
        return newest(self._storage)

    def version(self, number: int) -> TableVersion | None:
        try:
            own = segment(self._storage, number).own
        except MissingFile:
            return None
        snapshot, actions = self._snapshot(number), self._actions(number) if own else None
        changes_rows = _changes_rows(snapshot, actions)
        listed = _rows([file for unit in snapshot.units for file in unit.files])
        settled = changes_rows is None and _deleted(snapshot) is None
        before = self._rows_before(number) if settled else None
        return TableVersion(
            number=number,
            parent=number - 1,
            author=_author(snapshot),
            changes_rows=changes_rows,
            units={unit.key: _state(unit) for unit in snapshot.units},
            touched=_touched(snapshot, actions or ()),
            # Rows of the parent: a commit that changes no rows must still have them.
            rows_stated=None if listed is None else before,
            rows_listed=listed or 0,
            deletes=_deleted(snapshot),
            identity=snapshot.identity,
        )

    def digest(self, number: int) -> str | None:
        return digest(self._storage, number)

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        return self.shown((side,), units, payload=payload).drop(SHOWN)

    def shown(self, sides: Sequence[Side], units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        snapshots = [self._snapshots[side.version] for side in sides]
        columns = DeltaColumns.of(snapshots[0])
        if any(DeltaColumns.of(other) != columns for other in snapshots[1:]):
            return read_apart([self.rows(side, units, payload=payload) for side in sides])
        held = shared([_placed(snapshot, units) for snapshot in snapshots], _stored)
        files = {file.number: file for each in held for file in each}
        if not files:
            return no_rows(self._spark, self.schema, payload).withColumn(SHOWN, F.lit(0))
        stored = stored_rows(self._spark, self._storage, columns, list(files.values()))
        named = stored.without([side.deleted for side in sides]).select(*_OF_ROWS, *stored.compared(self._compared))
        rows = named.select(*_OF_ROWS, *(value.alias(name) for name, value in payload.items()))
        for side, own in enumerate(held):
            deleted = vector_positions(self._spark, self._storage, own)
            rows = rows if deleted is None else hidden_at(rows, deleted, side)
        return shown_by_some(rows).select("unit", F.expr("true").alias("sound"), SHOWN, *payload)

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        snapshot = self._snapshots[version]
        checked = {_promises(file) for unit in self._snapshots[since].units for file in unit.files}
        (held,) = shared([_placed(snapshot, units)], _stored)
        fresh = [file for file in held if _promises(file.file) not in checked and file.file.stats]
        if not fresh:
            return {}
        wrong = misstated(self._spark, self._storage, DeltaColumns.of(snapshot), fresh)
        return {units[place]: count for place, count in wrong.items()}

    def doubled(self, sides: Sequence[Side], units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """None: readers merge by no key."""
        return {}

    def unreported(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        return {}

    @property
    def _compared(self) -> Compared:
        return Compared(self._columns, tracks=all(s.schema.row_tracking for s in self._snapshots.values()))

    def _snapshot(self, number: int) -> DeltaSnapshot:
        if number not in self._snapshots:
            self._snapshots[number] = load(self._address, self._storage, number)
        return self._snapshots[number]

    def _actions(self, number: int) -> tuple[Action, ...]:
        name = commit_name(number)
        return tuple(parse_lines(self._storage.read(name), subject=name))

    def _rows_before(self, number: int) -> int | None:
        """The rows of the version before, by its files' statistics; None if unknown."""
        try:
            segment(self._storage, number - 1)
        except MissingFile:
            return None
        return _rows([file for unit in self._snapshot(number - 1).units for file in unit.files])


def _author(snapshot: DeltaSnapshot) -> str:
    info = snapshot.commit_info
    return str(info.get("userMetadata") or info.get("engineInfo") or "")


def _changes_rows(snapshot: DeltaSnapshot, actions: Sequence[Action] | None) -> str | None:
    """Why a commit may have changed rows, by its own actions and not its operation's name. None if it cannot have."""
    if actions is None:
        return "its commit is not in the log any more"
    if any(kind == "metaData" for kind, _ in actions) and snapshot.version > 0:
        return f"its commit, {_operation(snapshot)}, changes the table's metadata"
    if _deleted(snapshot) is not None:
        return None
    # A missing dataChange counts as true.
    if any(body.get("dataChange") is not False for kind, body in actions if kind in ("add", "remove")):
        return f"its commit, {_operation(snapshot)}, changes data"
    return None


def _deleted(snapshot: DeltaSnapshot) -> str | None:
    """The condition of our own DELETE, else None. Other engines write conditions in another syntax."""
    info = snapshot.commit_info
    parameters = info.get("operationParameters")
    if info.get("operation") != "DELETE" or not str(info.get("engineInfo")).startswith("Nightkeep/"):
        return None
    conditions = json.loads(str(parameters.get("predicate"))) if isinstance(parameters, Mapping) else []
    return str(conditions[0]) if len(conditions) == 1 else None


def _operation(snapshot: DeltaSnapshot) -> str:
    return str(snapshot.commit_info.get("operation") or "of an unknown operation")


def _touched(snapshot: DeltaSnapshot, actions: Sequence[Action]) -> frozenset[UnitKey]:
    """Partitions of the commit's own adds and removes. A remove may lack its partition values."""
    values = (body.get("partitionValues") for kind, body in actions if kind in ("add", "remove"))
    schema = snapshot.schema
    return frozenset(
        UnitKey(key_text(schema, typed(schema, partition))) for partition in values if isinstance(partition, Mapping)
    )


def _state(unit: DeltaUnit) -> UnitState:
    return UnitState(
        identity=frozenset(_identity(file) for file in unit.files),
        bytes=sum(file.bytes for file in unit.files),
        rows=_rows(unit.files),
        waiting=frozenset(),
    )


def _identity(file: DeltaDataFile) -> tuple[object, ...]:
    """The values of a file that determine which rows it shows, and with which row ids."""
    return (*file.identity, file.raw.get("baseRowId"), file.raw.get("defaultRowCommitVersion"))


def _promises(file: DeltaDataFile) -> tuple[object, ...]:
    return (*file.identity, file.stats)


def _rows(files: Sequence[DeltaDataFile]) -> int | None:
    """The live rows of files, by metadata alone. None if a file's statistics lack the row count."""
    counts = [file.rows for file in files]
    stated = [count for count in counts if count is not None]
    return sum(stated) - sum(file.deleted_rows for file in files) if len(stated) == len(counts) else None


def _stored(file: DeltaDataFile) -> tuple[object, ...]:
    """The values of a file that determine what its stored rows are."""
    return (file.path, repr(file.raw.get("partitionValues")), *_identity(file)[-2:])


def _placed(snapshot: DeltaSnapshot, units: Sequence[UnitKey]) -> list[tuple[int, DeltaDataFile]]:
    held = ((place, snapshot.by_key[key].files) for place, key in enumerate(units) if key in snapshot.by_key)
    return [(place, file) for place, files in held for file in files]
