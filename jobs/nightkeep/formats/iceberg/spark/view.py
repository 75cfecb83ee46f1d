"""Iceberg snapshot -> Spark DataFrames, by Spark's Parquet reader and anti-joins, without Iceberg's Spark runtime.

Shares the readers of manifests and table metadata with the other rooms, but no code that rewrites, reads columns or
verifies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.iceberg.catalog.catalog import TableHandle, open_handle
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Manifest, Status
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.naming import MOVED_PROPERTY, OPERATION_PROPERTY, RUN_PROPERTY
from nightkeep.formats.iceberg.metadata.partition import unit_key
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT, IcebergSnapshot, IcebergUnit, load
from nightkeep.formats.iceberg.metadata.table_metadata import ancestors, digest_on_main, head, summary_of
from nightkeep.formats.iceberg.spark.data_files import IcebergColumns, compared_schema, stored_rows
from nightkeep.formats.iceberg.spark.deletes import Deletes, Deleting, key_name, keys_of, partition_of, refuse_deletes
from nightkeep.formats.iceberg.spark.statistics_check import misstated
from nightkeep.model import Address, UnitKey, View
from nightkeep.spark.shared_files import SHOWN, shared, shown_by_some
from nightkeep.spark.stored_files import StoredFile, no_rows
from nightkeep.spark.view import Side, TableVersion, UnitState, connect

_SETTINGS: Final[Mapping[str, str]] = {
    # Off by default in Spark. It has no effect on a read schema without ids.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # Spark has no timestamps of nanoseconds.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}

JOINED: Final = UnitKey("partitions of several specs")


def open_table(address: Address, spark: SparkSession) -> IcebergView:
    """The view of the catalog's current table. Raises RefusedTable for a feature that we cannot read, AddressError."""
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    return IcebergView(address, open_handle(address.location), spark)


class IcebergView:
    """The view of one table. A unit is a partition of a spec, a version is a snapshot.

    If the first version that is asked for, or one since, moved rows between specs, all partitions that these commits
    touched are one unit in every version: JOINED.

    Every version is read once and kept, and has the table's current columns.
    """

    published: Final = View.RAW
    """The merged view has the same rows: readers apply every delete."""
    compares_with_parent: Final = True
    """Appends are visible at once, so a commit can only be compared with the snapshot directly before it."""

    def __init__(self, address: Address, handle: TableHandle, spark: SparkSession) -> None:
        self._address, self._handle, self._spark = address, handle, spark
        connect(spark, handle.storage)
        newest = load(address, handle, reads_only=True)
        self._schema: IcebergSchema = newest.schema
        self._newest = newest.version
        self._snapshots = {newest.version: newest}
        self._joined: frozenset[UnitKey] | None = None

    @property
    def schema(self) -> T.StructType:
        """The compared columns, with the row lineage columns if every version read so far has them."""
        return compared_schema(self._schema, tracks=self._tracks)

    @property
    def keys(self) -> tuple[str, ...]:
        """Empty: Iceberg guarantees no column to be unique."""
        return ()

    @property
    def declared_keys(self) -> tuple[str, ...]:
        """The identifier fields (spec, "Identifier Field IDs"); none if one of them lies in a struct."""
        schema = self._schema.current
        names = [schema.find_column_name(number) for number in sorted(schema.identifier_field_ids)]
        columns = {field.name for field in schema.fields}
        return tuple(name for name in names if name) if columns.issuperset(names) else ()

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def silent(self) -> Mapping[str, str]:
        always = {
            "distinct_keys": "the table has no identifier fields, and check.keys names no columns",
            "unreported": "a commit that changes no row reports nothing to streaming readers",
        }
        if IcebergColumns(self._schema).identities:
            return always
        return always | {"unsound": "no partition repeats a column's value, which the value could contradict"}

    def latest(self) -> int:
        """The id of the current snapshot; NO_SNAPSHOT if there is none."""
        return self._newest

    def version(self, number: int) -> TableVersion | None:
        if number == NO_SNAPSHOT:
            return _nothing(self._snapshot(number))
        raw, _ = self._handle.load()
        if number not in head(raw, subject=self._address.name).snapshots:
            return None
        snapshot = self._snapshot(number)
        if self._joined is None:
            self._joined = frozenset(key for move in self._moves_since(snapshot) for key in self._touched(move))
        listed = _listed(snapshot)
        return TableVersion(
            number=number,
            parent=NO_SNAPSHOT if snapshot.parent_version is None else snapshot.parent_version,
            author=_author(snapshot),
            changes_rows=_changes_rows(snapshot),
            units=self._states(snapshot),
            touched=frozenset(JOINED if key in self._joined else key for key in self._touched(snapshot)),
            rows_stated=self._stated_rows(snapshot),
            rows_listed=listed,
            identity=snapshot.identity,
        )

    def digest(self, number: int) -> str | None:
        raw, location = self._handle.load()
        return digest_on_main(raw, number, subject=location)

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        return self.shown((side,), units, payload=payload).drop(SHOWN)

    def shown(self, sides: Sequence[Side], units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        snapshots = [self._snapshots[side.version] for side in sides]
        held = shared([self._placed(snapshot, units) for snapshot in snapshots], _stored)
        files = {file.number: file for each in held for file in each}
        if not files:
            return no_rows(self._spark, self.schema, payload).withColumn(SHOWN, F.lit(0))
        deletes = [self._deletes(*each, units) for each in zip(snapshots, held, strict=True)]
        key_ids = sorted({number for each in deletes for number in each.key_ids})
        columns = self._columns(key_ids)
        stored = stored_rows(self._spark, self._handle.storage, columns, list(files.values()))
        placed = ("unit", "position", "sequence", SHOWN)
        named = stored.frame.select(
            *placed, columns.sound().alias("sound"), *keys_of(stored, key_ids), *stored.compared(tracks=self._tracks)
        )
        values = [value.alias(name) for name, value in payload.items()]
        rows = named.select(*placed, "sound", *(key_name(number) for number in key_ids), *values)
        for side, (own, each) in enumerate(zip(held, deletes, strict=True)):
            rows = Deleting(self._spark, self._handle.storage, self._schema, own, each, side).hidden(rows)
        return shown_by_some(rows).select("unit", "sound", SHOWN, *payload)

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        snapshot = self._snapshots[version]
        before = {file.identity for file in _every(self._snapshots[since])}
        (own,) = shared([self._placed(snapshot, units)], _stored)
        fresh = [file for file in own if file.file.identity not in before]
        held = self._held(snapshot, units)
        deletes = [
            StoredFile(number, place, file)
            for number, (place, file) in enumerate((place, file) for place, unit in held for file in unit.positional)
            if file.identity not in before and not file.is_vector
        ]
        counts = misstated(self._spark, self._handle.storage, self._schema, fresh, deletes)
        return {units[place]: count for place, count in counts.items()}

    def doubled(self, sides: Sequence[Side], units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """None: readers merge by no key."""
        return {}

    def unreported(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        return {}

    def _states(self, snapshot: IcebergSnapshot) -> Mapping[UnitKey, UnitState]:
        keys = self._joined or frozenset()
        states = {unit.key: _state(unit) for unit in snapshot.units if unit.key not in keys}
        joined = [_state(snapshot.by_key[key]) for key in sorted(keys) if key in snapshot.by_key]
        if not joined:
            return states
        rows = [state.rows for state in joined]
        whole = UnitState(
            identity=tuple(state.identity for state in joined),
            bytes=sum(state.bytes for state in joined),
            rows=None if None in rows else sum(count or 0 for count in rows),
            waiting=frozenset(),
        )
        return {**states, JOINED: whole}

    def _moves_since(self, snapshot: IcebergSnapshot) -> Iterator[IcebergSnapshot]:
        """The snapshot and those that came from it up to the newest one, of which each moved rows between specs."""
        raw, location = self._handle.load()
        known = head(raw, subject=location)
        for number in ancestors(raw, known.current, subject=location):
            if MOVED_PROPERTY in summary_of(known.snapshots[number], subject=location):
                yield self._snapshot(number)
            if number == snapshot.version:
                return

    def _held(self, snapshot: IcebergSnapshot, keys: Sequence[UnitKey]) -> list[tuple[int, IcebergUnit]]:
        """The partitions of each unit, with its place."""
        return [
            (place, snapshot.by_key[own])
            for place, key in enumerate(keys)
            for own in (sorted(self._joined or ()) if key == JOINED else [key])
            if own in snapshot.by_key
        ]

    def _placed(self, snapshot: IcebergSnapshot, keys: Sequence[UnitKey]) -> list[tuple[int, ContentFile]]:
        held = self._held(snapshot, keys)
        for refusal in (unit.left_out for _, unit in held if unit.left_out is not None):
            raise refusal
        return [(place, file) for place, unit in held for file in unit.files]

    @property
    def _tracks(self) -> bool:
        """Whether all versions read so far have row ids: after an upgrade the next commit assigns the first ids."""
        return self._schema.has_row_lineage and all("first-row-id" in s.raw or not s.raw for s in self._known)

    @property
    def _known(self) -> tuple[IcebergSnapshot, ...]:
        return tuple(self._snapshots.values())

    def _snapshot(self, number: int) -> IcebergSnapshot:
        if number not in self._snapshots:
            self._snapshots[number] = load(self._address, self._handle, number, read_as=self._schema, reads_only=True)
        return self._snapshots[number]

    def _deletes(
        self, snapshot: IcebergSnapshot, files: Sequence[StoredFile[ContentFile]], units: Sequence[UnitKey]
    ) -> Deletes:
        places = {partition_of(each.file): each.unit for each in files}
        oldest = min((each.file.sequence_number for each in files), default=0)
        held = {file.identity: file for unit in snapshot.units for file in (*unit.positional, *unit.equality)}
        deletes = Deletes.of(self._schema, held.values(), places, oldest)
        refuse_deletes(self._schema, (*(delete for _, delete in deletes.scoped), *deletes.everywhere))
        return deletes

    def _columns(self, key_ids: Sequence[int]) -> IcebergColumns:
        current = {field.field_id for field in self._schema.current.fields}
        return IcebergColumns(
            self._schema, tuple(self._schema.field(number) for number in key_ids if number not in current)
        )

    def _touched(self, snapshot: IcebergSnapshot) -> Iterator[UnitKey]:
        """The partitions of files that the commit added or removed. Global equality deletes are in none."""
        own = (manifest for manifest in snapshot.manifests if manifest.snapshot_id == snapshot.version)
        for file in (file for manifest in own for file in self._changed(manifest, snapshot.version)):
            key = unit_key(self._schema, file.spec_id, file.partition)
            if key in snapshot.by_key:
                yield key

    def _changed(self, manifest: Manifest, version: int) -> Iterator[ContentFile]:
        for entry in read_manifest(self._handle.storage, manifest, self._schema):
            if entry.status is not Status.EXISTING and entry.snapshot_id == version:
                yield entry.file

    def _stated_rows(self, snapshot: IcebergSnapshot) -> int | None:
        """The summary's total of rows, deleted ones included, corrected by any error in the parent's total; None if the
        summary has none."""
        parent, total = snapshot.parent_version, snapshot.summary.get("total-records")
        if total is None:
            return None
        raw, _ = self._handle.load()
        if parent is None or parent not in head(raw, subject=self._address.name).snapshots:
            return int(total)
        before = self._snapshot(parent)
        return int(total) - int(before.summary.get("total-records", _listed(before))) + _listed(before)


def _nothing(snapshot: IcebergSnapshot) -> TableVersion:
    return TableVersion(
        snapshot.version, NO_SNAPSHOT, "", "nothing was ever written", {}, frozenset(), 0, 0, identity=snapshot.identity
    )


def _author(snapshot: IcebergSnapshot) -> str:
    summary = snapshot.summary
    return summary.get(RUN_PROPERTY) or " ".join(
        summary[key] for key in ("engine-name", "engine-version") if key in summary
    )


def _changes_rows(snapshot: IcebergSnapshot) -> str | None:
    """The reason why a commit may have changed rows, by its summary; None for `replace` and for our own operations."""
    if snapshot.operation == "replace" or OPERATION_PROPERTY in snapshot.summary:
        return None
    return f"its operation is {snapshot.operation or 'unknown'}"


def _listed(snapshot: IcebergSnapshot) -> int:
    return sum(file.rows for unit in snapshot.units for file in unit.files)


def _every(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    return (file for unit in snapshot.units for file in (*unit.files, *unit.positional))


def _state(unit: IcebergUnit) -> UnitState:
    oldest = min((file.sequence_number for file in unit.files), default=0)
    equality = [delete for delete in unit.equality if delete.sequence_number > oldest]
    return UnitState(
        identity=frozenset(_identity(file) for file in (*unit.files, *unit.positional, *equality)),
        bytes=sum(file.bytes for file in unit.files),
        rows=_rows(unit, equality),
        waiting=frozenset(),
    )


def _identity(file: ContentFile) -> tuple[object, ...]:
    """The values of a file that decide which rows it adds or deletes, and their ids."""
    return (*file.identity, file.content, file.content_bytes, file.sequence_number, file.first_row_id)


def _rows(unit: IcebergUnit, equality: Sequence[ContentFile]) -> int | None:
    """Live rows by counts of files and vectors; None with other deletes, whose rows metadata does not count."""
    if equality or not all(file.is_vector for file in unit.positional):
        return None
    names = {file.path for file in unit.files}
    hidden = sum(vector.rows for vector in unit.positional if vector.referenced in names)
    return sum(file.rows for file in unit.files) - hidden


def _stored(file: ContentFile) -> tuple[object, ...]:
    """The values of a data file that determine what its stored rows are, and which deletes apply to them."""
    return (file.path, file.spec_id, repr(file.partition), file.sequence_number, file.first_row_id)
