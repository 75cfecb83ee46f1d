"""Snapshot -> the health of an Iceberg table."""

from __future__ import annotations

from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import head
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.model.health import Health


def health(snapshot: IcebergSnapshot, request: Request) -> Health:
    """`deleted_rows` are those of position deletes and vectors; a position may be counted twice in version 2. Equality
    deletes have no count of the rows that they delete."""
    sizes = sizes_of(snapshot, request)
    files = [file for unit in snapshot.units for file in unit.files]
    positional = {file.identity: file for unit in snapshot.units for file in unit.positional}.values()
    # Global equality deletes are in the scope of every unit.
    equality = {file.identity: file for unit in snapshot.units for file in unit.equality}.values()
    rows = sum(file.rows for file in files)
    return Health(
        files=len(files),
        bytes=sum(file.bytes for file in files),
        small_files=sum(file.bytes < sizes.small for file in files),
        rows=rows,
        deleted_rows=min(rows, sum(file.rows for file in positional)),
        delete_files=len({file.path for file in positional}),
        equality_files=len(equality),
        equality_deletes=sum(file.rows for file in equality),
        manifests=len(snapshot.manifests),
        versions=len(head(snapshot.metadata, subject=snapshot.table.name).snapshots),
    )
