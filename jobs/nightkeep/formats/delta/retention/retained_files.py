"""Address and store -> the functions that list which files of a Delta table are needed."""

from __future__ import annotations

from nightkeep.formats.delta.retention import expire, log_removals, referenced_files, table_files, vacuum_commits
from nightkeep.formats.delta.retention.referenced_files import RootFiles, Source
from nightkeep.model import Address
from nightkeep.protocol import Bound
from nightkeep.protocol.table_files import RemovalEntries, RemovedByLog, RetainedFiles
from nightkeep.storage import Storage


def retained_files(table: Address, storage: Storage) -> RetainedFiles[RootFiles, Source]:
    return RetainedFiles(
        table_files=Bound(Bound(table_files.find_table_files, table), storage),
        roots=Bound(Bound(referenced_files.roots, table), storage),
        reach=Bound(referenced_files.reach, storage),
        live=Bound(referenced_files.live, storage),
        expiry=Bound(Bound(expire.expiry, table), storage),
        removals=RemovalEntries(
            announce=Bound(Bound(vacuum_commits.announce, table), storage),
            conclude=Bound(Bound(vacuum_commits.conclude, table), storage),
        ),
        by_log=RemovedByLog(
            gap=Bound(Bound(log_removals.gap, table), storage),
            removals=Bound(Bound(log_removals.removals, table), storage),
            settled=Bound(Bound(log_removals.settled, table), storage),
        ),
    )
