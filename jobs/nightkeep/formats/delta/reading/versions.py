"""A version of the log -> the snapshot as Delta's readers see it."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.delta.metadata.log_segment import newest
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address
from nightkeep.storage import Storage


def find_version(
    table: Address,
    storage: Storage,
    version: int | None = None,
    tag: str | None = None,
    *,
    read_as: DeltaSnapshot | None = None,
) -> DeltaSnapshot:
    """The snapshot; the newest without `version`. Raises UsageError for a tag, which Delta does not have, and for a
    version above the newest; MissingFile for one that the log no longer has."""
    if tag is not None:
        raise UsageError(f"{table.name}: expected no tag, as Delta tables have none, found {tag!r}")
    if version is not None and not 0 <= version <= (last := newest(storage)):
        raise UsageError(f"{table.name}: expected a version up to {last}, found {version}")
    snapshot = load(table, storage, version, only_shows=True)
    return snapshot if read_as is None else _with_columns(snapshot, read_as)


def _with_columns(snapshot: DeltaSnapshot, other: DeltaSnapshot) -> DeltaSnapshot:
    """The snapshot with the columns of the other. Raises RefusedTable if their partition columns differ."""
    ours, theirs = ([(name, each.schema.field(name)) for name in each.partition_columns] for each in (snapshot, other))
    if ours != theirs or snapshot.schema.mapping is not other.schema.mapping:
        feature = "versions with other partition columns, or another mapping of columns, are not compared"
        raise RefusedTable(snapshot.table.name, feature, "compare versions after the change")
    units = tuple(replace(unit, schema=other.schema) for unit in snapshot.units)
    return replace(snapshot, schema=other.schema, units=units)
