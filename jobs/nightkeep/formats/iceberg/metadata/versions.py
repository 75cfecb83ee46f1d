"""A number or a staged name -> the snapshot, with columns that can be compared with those of its base."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.formats.iceberg.metadata.catalog_table import CatalogTable
from nightkeep.formats.iceberg.metadata.moved_units import with_moved
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, load, load_staged
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, digest_on_main, head
from nightkeep.model import Address, Candidate


def read_version(
    table: Address, handle: CatalogTable, version: int | None = None, *, read_as: IcebergSnapshot | None = None
) -> IcebergSnapshot:
    """The snapshot `version`, None for the newest, with the columns of `read_as` where that is given.

    A table's columns may change without a new snapshot.
    """
    snapshot = load(table, handle, version, read_as=None if read_as is None else read_as.schema)
    return snapshot if read_as is None else _comparable(snapshot, snapshot.raw)


def read_staged(table: Address, handle: CatalogTable, candidate: Candidate) -> IcebergSnapshot:
    snapshot = with_moved(load_staged(table, handle, candidate.metadata), candidate.units)
    snapshots = head(snapshot.metadata, subject=snapshot.metadata_location).snapshots
    return _comparable(snapshot, snapshots.get(candidate.parent_version, snapshot.raw))


def digest(handle: CatalogTable, version: int) -> str | None:
    """The digest of a snapshot that main is built on; None for any other."""
    metadata, location = handle.load()
    return digest_on_main(metadata, version, subject=location)


def _comparable(snapshot: IcebergSnapshot, base: Raw) -> IcebergSnapshot:
    """The snapshot without row ids where `base` has none: our commit then assigns the first ids."""
    if not snapshot.schema.has_row_lineage or "first-row-id" in base or not base:
        return snapshot
    plain = replace(snapshot.schema, format_version=2)
    return replace(snapshot, units=tuple(replace(unit, schema=plain) for unit in snapshot.units))
