"""Snapshot -> the health of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, VectorStorage
from nightkeep.formats.delta.metadata.log_segment import commits_newest_first
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.model.file_columns import UNKNOWN, FileColumns, columns_of, taken, total
from nightkeep.model.health import Health
from nightkeep.storage import Storage


def health(storage: Storage, snapshot: DeltaSnapshot, request: Request) -> Health:
    """`versions` are the commits that the log still has."""
    sizes = sizes_of(snapshot, request)
    files = [unit.files for unit in snapshot.units]
    columns = FileColumns.of([columns_of(some) for some in files])
    counted = not (columns.rows == UNKNOWN).any()
    return Health(
        files=len(columns),
        bytes=total(columns.bytes),
        small_files=int(np.count_nonzero(sizes.are_small(columns))),
        rows=total(columns.rows) if counted else None,
        deleted_rows=total(columns.deleted_rows),
        delete_files=len({place for some in files for place in _stored_vectors(some)}),
        versions=len(commits_newest_first(storage)),
    )


def _stored_vectors(files: Sequence[DeltaDataFile]) -> Iterator[str]:
    """The place of each vector that is stored in a file."""
    for file in taken(files, np.flatnonzero(columns_of(files).deletes)):
        if file.vector is not None and file.vector.kind is not VectorStorage.INLINE:
            yield file.vector.place
