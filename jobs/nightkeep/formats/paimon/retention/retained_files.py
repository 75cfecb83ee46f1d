"""Address and store -> the functions that list which files of a Paimon table are needed."""

from __future__ import annotations

from nightkeep.formats.paimon.metadata.branch import refuse_branch_sweep
from nightkeep.formats.paimon.retention import expire, referenced_files, roots, table_files
from nightkeep.formats.paimon.retention.referenced_files import Source
from nightkeep.formats.paimon.retention.roots import RootMetadata
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.table_files import RetainedFiles, Retention, Root
from nightkeep.storage import Storage


def retained_files(table: Address, storage: Storage) -> RetainedFiles[RootMetadata, Source]:
    return RetainedFiles(
        table_files=Bound(Bound(table_files.find_table_files, table), storage),
        roots=Bound(Bound(every_root, table), storage),
        reach=Bound(referenced_files.reach, storage),
        live=Bound(referenced_files.live, storage),
        expiry=Bound(Bound(expire.expiry, table), storage),
    )


def every_root(table: Address, storage: Storage, retention: Retention) -> tuple[Root[RootMetadata], ...]:
    """All versions that exist, whatever `retention` is: only expiry removes a version."""
    refuse_branch_sweep(table.name, table.location)
    return roots.roots(storage)
