"""Metadata of a Delta table -> what it states of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Address
from nightkeep.model.description import TableDescription, is_on
from nightkeep.storage import Storage

_AUTO_COMPACTION: Final = ("delta.autoOptimize.autoCompact", "delta.autoOptimize")
"""Writers compact after their commits: true, auto or legacy. The second is an older name."""


def described(snapshot: DeltaSnapshot) -> TableDescription:
    return _of(snapshot.raw_metadata)


def describe(address: Address, storage: Storage) -> TableDescription:
    """The newest version's description, from the log's head. Raises as `head`."""
    return _of(head(storage, table=address.name).metadata)


def _of(metadata: Mapping[str, object]) -> TableDescription:
    named, identity = metadata.get("configuration"), metadata.get("id")
    pairs = named.items() if isinstance(named, Mapping) else ()
    properties = {str(name): str(value) for name, value in pairs if value is not None}
    managers = tuple(
        f"auto compaction ({name} = {properties[name]})" for name in _AUTO_COMPACTION if is_on(properties, name)
    )
    return TableDescription(None if identity is None else str(identity), properties, managers)
