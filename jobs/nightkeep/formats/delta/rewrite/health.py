"""Snapshot -> the health of a Delta table."""

from __future__ import annotations

from nightkeep.formats.delta.metadata.log_segment import commits_newest_first
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, VectorStorage
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.model.health import Health
from nightkeep.storage import Storage


def health(storage: Storage, snapshot: DeltaSnapshot, request: Request) -> Health:
    """`versions` are the commits that the log still has."""
    sizes = sizes_of(snapshot, request)
    files = [file for unit in snapshot.units for file in unit.files]
    rows = [file.rows for file in files]
    vectors = [file.vector for file in files if file.vector is not None]
    stored = {vector.place for vector in vectors if vector.kind is not VectorStorage.INLINE}
    return Health(
        files=len(files),
        bytes=sum(file.bytes for file in files),
        small_files=sum(map(sizes.is_small, files)),
        rows=None if None in rows else sum(row for row in rows if row is not None),
        deleted_rows=sum(file.deleted_rows for file in files),
        delete_files=len(stored),
        versions=len(commits_newest_first(storage)),
    )
