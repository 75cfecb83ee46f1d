"""Address and catalog's table -> the functions that list which files of an Iceberg table are needed.

Each reads the whole metadata file anew, as an answer of the catalog may leave out parts of it.
"""

from __future__ import annotations

from nightkeep.formats.iceberg.catalog.catalog import TableHandle, claims_of
from nightkeep.formats.iceberg.retention import expire, referenced_files, table_files
from nightkeep.formats.iceberg.retention.referenced_files import ManifestFiles, RootFiles
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.table_files import RetainedFiles, Retention, Root, TableFiles


def retained_files(table: Address, handle: TableHandle) -> RetainedFiles[RootFiles, ManifestFiles]:
    return RetainedFiles(
        table_files=Bound(Bound(find_table_files, table), handle),
        roots=Bound(Bound(roots, table), handle),
        reach=Bound(referenced_files.reach, handle.storage),
        live=Bound(referenced_files.live, handle.storage),
        expiry=Bound(Bound(expire.expiry, table.name), handle),
    )


def find_table_files(table: Address, handle: TableHandle) -> TableFiles:
    return table_files.find_table_files(table, handle.storage, handle.whole(), claims_of(handle))


def roots(table: Address, handle: TableHandle, retention: Retention) -> tuple[Root[RootFiles], ...]:
    return referenced_files.roots(table.name, handle.whole(), retention)
