"""A data file of a table with `sequence.snapshot-ordering` -> the sequence number of its rows.

There the snapshot of a row's commit is its sequence number. A commit writes its id into the metadata of the files that
it appends, whose rows have other numbers; files of a compaction store what their rows had. Source:
FileStoreCommitImpl.stampSequenceWithSnapshotId and KeyValueFileReaderFactory of Paimon 2.0.0.
"""

from __future__ import annotations

from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.changelog import SNAPSHOT_ORDERING
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile, PaimonSnapshot
from nightkeep.model import Request

APPENDED: Final = 0
COMPACTED: Final = 1
"""Values of _FILE_SOURCE on disk (C/manifest/FileSource.java)."""


def file_sequence(file: PaimonDataFile, schema: PaimonSchema) -> int | None:
    """The sequence number of all rows of the file; None where each row stores its own. `schema` is the table's current
    one. Raises RefusedTable for a file that is older than the option. Java takes the least number of the rows for all
    of them if the file is marked as appended, and refuses a file without such a mark."""
    if not option_bool(schema, SNAPSHOT_ORDERING):
        return None
    source = file.record.get("_FILE_SOURCE")
    if source is None or (source == APPENDED and file.min_sequence != file.max_sequence):
        raise RefusedTable(
            file.name,
            f"option {SNAPSHOT_ORDERING} = true and a file without the number of its snapshot",
            "the option is for tables that had it from the start; unset it",
        )
    return file.min_sequence if source == APPENDED else None


def refuse_unstamped_files(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable as `file_sequence`, before any data is read."""
    for unit in snapshot.units:
        for file in unit.files:
            file_sequence(file, snapshot.schema)
