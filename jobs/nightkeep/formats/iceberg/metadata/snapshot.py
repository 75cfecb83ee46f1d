"""Table metadata and manifests -> snapshot: the live files of each partition, and the deletes in scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nightkeep.encodings.uncollected import uncollected
from nightkeep.errors import MissingFile, RefusedTable
from nightkeep.formats.iceberg.metadata.catalog_table import CatalogTable
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Manifest
from nightkeep.formats.iceberg.metadata.features import (
    manifest_list_of,
    refuse_features,
    refuse_manifests,
    unread_feature,
)
from nightkeep.formats.iceberg.metadata.first_version import completed
from nightkeep.formats.iceberg.metadata.manifest_list import embedded_manifests, read_manifest_list
from nightkeep.formats.iceberg.metadata.manifest_schema import unwritten_type
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.naming import OPERATION_PROPERTY
from nightkeep.formats.iceberg.metadata.partition import far_value, typed, unit_key
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse
from nightkeep.formats.iceberg.metadata.snapshot_numbers import next_row_id, sequence_number
from nightkeep.formats.iceberg.metadata.table_metadata import (
    NO_SNAPSHOT,
    Raw,
    commit_digest,
    decode,
    head,
    integer,
    parent_id,
    summary_of,
)
from nightkeep.formats.iceberg.metadata.units import PartitionFiles, gather, unread_unit
from nightkeep.model import Address, FileSizes, UnitKey, VersionIdentity, digest_of
from nightkeep.storage import Storage, spelled

__all__ = ["NO_SNAPSHOT", "IcebergSnapshot", "IcebergUnit", "load", "load_staged"]
_MOVED_ON = 20
"""Attempts to read the newest snapshot while other processes expire it."""


@dataclass(frozen=True, slots=True)
class IcebergUnit:
    """The data files of one partition of one spec, ordered by path, and every live delete file in their scope.

    `values` is the partition in the form of manifests. `partition` has the same values by the names of partition
    fields, typed for filters, and None for fields that only other specs have. `positional` are position delete files
    and vectors of the same spec and partition. `equality` are its own equality deletes and the global ones. Sequence
    numbers decide which of them apply to which file (delete_index). A partition without data files is a unit if it
    has deletes of its own, or if this snapshot removed its last file. `left_out` states why no operation reads it,
    `unread` why nobody does. `moved`, of a staged snapshot only: the files in partitions of the current spec that it
    writes of this partition's rows, by partition. `is_moved`: the unit is one of these.
    """

    key: UnitKey
    partition: Mapping[str, object]
    spec_id: int
    values: tuple[object, ...]
    files: tuple[ContentFile, ...]
    positional: tuple[ContentFile, ...]
    equality: tuple[ContentFile, ...]
    schema: IcebergSchema
    left_out: RefusedTable | None = field(default=None, compare=False)
    unread: RefusedTable | None = field(default=None, compare=False)
    moved: tuple[IcebergUnit, ...] = ()
    is_moved: bool = False


@dataclass(frozen=True)
class IcebergSnapshot:
    """One snapshot of a table. `version` is the snapshot id, NO_SNAPSHOT for a table without snapshots.

    `manifests` are in the order of the manifest list. `raw` is the snapshot's JSON in table metadata, `metadata` the
    JSON of the whole table metadata, `metadata_location` its location. `next_row_id` is the table's, None without row
    lineage. `stray` are live deletes of no unit: global ones of an empty table. `unread` is set in an outline only: it
    states why no run can go on from this snapshot.
    """

    table: Address
    version: int
    parent_version: int | None
    sequence_number: int
    timestamp_ms: int
    schema: IcebergSchema
    units: tuple[IcebergUnit, ...]
    operation: str
    summary: Mapping[str, str]
    manifests: tuple[Manifest, ...]
    raw: Raw
    metadata: Raw
    metadata_location: str
    next_row_id: int | None = None
    unread: RefusedTable | None = field(default=None, compare=False)
    stray: tuple[ContentFile, ...] = field(default=())

    @cached_property
    def identity(self) -> VersionIdentity:
        """The snapshot id, and a digest of table UUID, snapshot id and location of the manifest list.

        The location of table metadata is no part of it: it changes with every commit.
        """
        content = digest_of(*(repr(manifest).encode() for manifest in self.manifests))
        return VersionIdentity(self.version, commit_digest(self.metadata, self.raw), content)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition fields of every spec, void ones left out."""
        specs = self.schema.specs.values()
        fields = (each for spec in specs for each in spec.fields if str(each.transform) != "void")
        return tuple(dict.fromkeys(each.name for each in fields))

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        vectors = sum(file.is_vector for unit in self.units for file in unit.positional)
        return FileSizes(tuple(file.bytes for file in files), tuple(None for _ in files), vectors)

    @property
    def changes_rows(self) -> bool:
        """Whether the snapshot changed rows, by its operation and summary.

        A commit that only stores deletes in another form also has the operation `delete`.
        """
        return self.operation != "replace" and OPERATION_PROPERTY not in self.summary

    @cached_property
    def lightest(self) -> IcebergUnit | None:
        """The unit with the fewest bytes of data: the cheapest to prove if a change belongs to no unit."""
        read = (unit for unit in self.units if unit.left_out is None)
        return min(read, key=lambda unit: (sum(file.bytes for file in unit.files), unit.key), default=None)

    @cached_property
    def by_key(self) -> Mapping[UnitKey, IcebergUnit]:
        return {unit.key: unit for unit in self.units}


@dataclass(frozen=True, slots=True)
class _Table:
    """Everything needed to read a snapshot that is the same for all snapshots of the table."""

    address: Address
    storage: Storage
    metadata: Raw
    location: str
    any_version: bool
    unread: RefusedTable | None = None
    reads_only: bool = False


def load(
    address: Address,
    handle: CatalogTable,
    version: int | None = None,
    *,
    read_as: IcebergSchema | None = None,
    reads_only: bool = False,
) -> IcebergSnapshot:
    """A snapshot by id; None: the current snapshot of main, with the table's current schema.

    A snapshot by id has the schema it was written with, as `VERSION AS OF` shows it, or the schema `read_as`: columns
    may change without a new snapshot. `reads_only`: for callers that change nothing, what only writers must know is no
    hindrance. Raises AddressError, Unreachable, MissingFile if the table no longer has the
    snapshot, RefusedTable for a feature that we do not handle, CorruptMetadata.
    """
    return _followed(address, handle, lambda table: _load(replace(table, reads_only=reads_only), version, read_as))


def _followed(address: Address, handle: CatalogTable, read: Callable[[_Table], IcebergSnapshot]) -> IcebergSnapshot:
    """The result of `read`. Reads again if the table changed meanwhile and files of the old version are gone."""
    seen: str | None = None
    for _ in range(_MOVED_ON):
        try:
            table = _table(address, handle)
            seen = table.location
            return read(table)
        except MissingFile:
            # Another process expired the snapshot, or deleted old metadata after a commit, while we read it.
            now = handle.answer()[1]
            if now == seen:
                raise
            seen = now
    raise MissingFile(address.name, "files of its newest version", f"{_MOVED_ON} in a row that went")


def _load(table: _Table, version: int | None, read_as: IcebergSchema | None) -> IcebergSnapshot:
    address = table.address
    current = head(table.metadata, subject=address.name)
    if version is None:
        return _snapshot(table, None if current.current is None else current.snapshots[current.current], None)
    if version == NO_SNAPSHOT:
        return _snapshot(table, None, read_as)
    if version not in current.snapshots:
        raise MissingFile(f"{address.name}: snapshot {version}", "a snapshot that the table keeps", "none")
    raw = current.snapshots[version]
    return _snapshot(table, raw, read_as or _schema_of(table, raw))


def outline(address: Address, handle: CatalogTable) -> IcebergSnapshot:
    """The newest snapshot for planning only. Raises as `load`, but not for features that only runs cannot handle."""

    def read(table: _Table) -> IcebergSnapshot:
        unread = unread_feature(address.name, table.metadata, any_version=table.any_version)
        return _load(replace(table, unread=unread), None, None)

    return _followed(address, handle, read)


def load_staged(address: Address, handle: CatalogTable, name: str) -> IcebergSnapshot:
    """The staged snapshot in the file `name`, as readers will see it once it is published. Raises as `load`."""
    table = _table(address, handle)
    raw = decode(handle.storage.read(name), subject=spelled(handle.storage, name))
    return _snapshot(table, raw, _schema_of(table, raw))


def _table(address: Address, handle: CatalogTable) -> _Table:
    metadata, location = handle.load()
    whole = completed(metadata, subject=location or address.name)
    return _Table(address, handle.storage, whole, location, handle.commits_any_version)


def _schema_of(table: _Table, snapshot: Raw) -> IcebergSchema:
    # Snapshots of format version 1 may have no schema id.
    known = snapshot.get("schema-id") is not None
    number = integer(snapshot, "schema-id", subject=table.location) if known else None
    if table.unread is None:
        refuse_features(
            table.address.name,
            table.metadata,
            schema_id=number,
            any_version=table.any_version,
            reads_only=table.reads_only,
        )
    return parse(table.metadata, table=table.address.name, schema_id=number)


@uncollected()
def _snapshot(table: _Table, raw: Raw | None, schema: IcebergSchema | None) -> IcebergSnapshot:
    name = table.address.name
    schema = schema or _schema_of(table, {})
    version = NO_SNAPSHOT if raw is None else integer(raw, "snapshot-id", subject=name)
    manifests = () if raw is None else _manifests(table, raw)
    refuse_manifests(name, manifests)
    entries = (entry for manifest in manifests for entry in read_manifest(table.storage, manifest, schema))
    gathered = gather(schema, entries, snapshot_id=version)
    everywhere = tuple(sorted(gathered.everywhere, key=_by_path))
    units = tuple(sorted((_unit(schema, each, everywhere) for each in gathered.places), key=lambda unit: unit.key))
    if units and all(unit.unread if table.reads_only else unit.left_out for unit in units):
        raise units[0].left_out or RefusedTable(name, "no partition that we read", "use its engine")
    fields = {"timestamp-ms": head(table.metadata, subject=name).updated_ms, **(raw or {})}
    summary = summary_of(fields, subject=f"{name}: snapshot {version}")
    return IcebergSnapshot(
        table=table.address,
        version=version,
        parent_version=parent_id(fields, subject=name),
        sequence_number=sequence_number(fields, subject=name),
        timestamp_ms=integer(fields, "timestamp-ms", subject=name),
        schema=schema,
        units=units,
        operation=str(summary.get("operation", "")),
        summary={key: value for key, value in summary.items() if key != "operation"},
        manifests=manifests,
        raw=raw or {},
        metadata=table.metadata,
        metadata_location=table.location,
        next_row_id=next_row_id(table.metadata, fields, subject=name),
        unread=table.unread,
        stray=() if units else everywhere,
    )


def _manifests(table: _Table, snapshot: Raw) -> tuple[Manifest, ...]:
    if table.reads_only and "manifest-list" not in snapshot and "manifests" in snapshot:
        return embedded_manifests(table.storage, snapshot, subject=table.address.name)
    return read_manifest_list(table.storage, manifest_list_of(table.address.name, snapshot))


def _unit(schema: IcebergSchema, place: PartitionFiles, everywhere: tuple[ContentFile, ...]) -> IcebergUnit:
    unit = IcebergUnit(
        key=unit_key(schema, place.spec_id, place.values),
        partition=typed(schema, place.spec_id, place.values),
        spec_id=place.spec_id,
        values=place.values,
        files=tuple(sorted(place.files, key=_by_path)),
        positional=tuple(sorted(place.positional, key=_by_path)),
        # Units without equality deletes of their own share one tuple: there may be many global deletes.
        equality=tuple(sorted((*place.equality, *everywhere), key=_by_path)) if place.equality else everywhere,
        schema=schema,
    )
    unread = unread_unit(schema, place, unit.equality)
    left_out = unwritten_type(schema, place.spec_id) or unread or far_value(schema, place.spec_id, place.values)
    return unit if left_out is None else replace(unit, left_out=left_out, unread=unread)


def _by_path(file: ContentFile) -> tuple[str, int]:
    return (file.path, file.content_offset or 0)
