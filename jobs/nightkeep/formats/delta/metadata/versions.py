"""A number or a staged name -> the version of the table."""

from __future__ import annotations

from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load, load_staged
from nightkeep.model import Address, Candidate
from nightkeep.storage import Storage


def read_version(
    table: Address, storage: Storage, version: int | None = None, *, read_as: DeltaSnapshot | None = None
) -> DeltaSnapshot:
    """The snapshot of a version. `read_as` is ignored, because a candidate keeps the columns of its parent."""
    return load(table, storage, version)


def read_staged(table: Address, storage: Storage, candidate: Candidate) -> DeltaSnapshot:
    return load_staged(table, storage, candidate.parent_version, candidate.metadata)
