"""A snapshot id or a tag -> the snapshot as Iceberg's readers see it."""

from __future__ import annotations

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.metadata.first_version import completed
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, load
from nightkeep.formats.iceberg.metadata.table_metadata import NO_SNAPSHOT, head, integer, refs
from nightkeep.model import Address


def find_version(
    table: Address,
    handle: TableHandle,
    version: int | None = None,
    tag: str | None = None,
    *,
    read_as: IcebergSnapshot | None = None,
) -> IcebergSnapshot:
    """The snapshot with the columns that it was written with; the newest of main, without both, with the newest
    columns. Raises UsageError for a snapshot or tag that the table does not have, RefusedTable for a branch."""
    number = version if tag is None else _tagged(table, handle, tag)
    if number is not None:
        metadata, location = handle.load()
        known = head(completed(metadata, subject=location), subject=location).snapshots
        if number not in known and number != NO_SNAPSHOT:
            some = ", ".join(map(str, list(known)[-5:]))
            raise UsageError(
                f"{table.name}: expected a snapshot of the table, such as {some or 'none'}, found {number}"
            )
    return load(table, handle, number, read_as=None if read_as is None else read_as.schema, reads_only=True)


def _tagged(table: Address, handle: TableHandle, tag: str) -> int:
    metadata, location = handle.load()
    named = refs(metadata, subject=location)
    if tag not in named:
        tags = ", ".join(name for name, ref in named.items() if ref.get("type") == "tag")
        raise UsageError(f"{table.name}: expected a tag among {tags or 'none'}, found {tag!r}")
    if named[tag].get("type") != "tag":
        raise RefusedTable(
            table.name,
            f"branch {tag} is not read",
            f"name it in the address, $branch_{tag}, or a tag or a snapshot by its id",
        )
    return integer(named[tag], "snapshot-id", subject=f"{location}: {tag}")
