"""A number or a staged name -> the version, decoded from the store's bytes, so that the gate finds what a reader would.

A store cannot be pickled. Functions take the table's address, so every answer comes from the store of this process.
"""

from __future__ import annotations

from nightkeep.errors import RefusedTable
from nightkeep.formats.memory.metadata.snapshot import STORES, MemorySnapshot, Store, decode
from nightkeep.model import Address, Candidate

SORTED = "sorted"
"""The feature of a table in which each file's rows are sorted."""


def store_of(table: Address) -> Store:
    return STORES[table.location]


def read_version(
    table: Address, version: int | None = None, *, read_as: MemorySnapshot | None = None
) -> MemorySnapshot:
    """The snapshot of a version, by default the latest one listed. `read_as` is ignored: columns never change."""
    snapshot = read_named(table, version_name(max(versions(table)) if version is None else version))
    unknown = set(snapshot.features) - {SORTED}
    if unknown:
        feature = f"feature {', '.join(sorted(unknown))} is not handled"
        raise RefusedTable(table.name, feature, "leave the table to its engine")
    return snapshot


def read_staged(table: Address, candidate: Candidate) -> MemorySnapshot:
    """The snapshot of a staged version. Decoded by the same code as a published version, so both are read alike."""
    return read_named(table, candidate.metadata)


def read_named(table: Address, name: str) -> MemorySnapshot:
    """What is stored under a name, whatever features it has."""
    return decode(store_of(table).read(name), subject=f"{table.name}: {name}")


def digest(table: Address, version: int) -> str | None:
    """The digest of a version, None if it does not exist. Numbers have no gaps: newer versions are built on it."""
    if version not in versions(table):
        return None
    return read_named(table, version_name(version)).identity.commit


def versions(table: Address) -> set[int]:
    names = [name for name in store_of(table).files if name.startswith("version-")]
    return {int(name.removeprefix("version-").removesuffix(".json")) for name in names}


def version_name(version: int) -> str:
    return f"version-{version}.json"
