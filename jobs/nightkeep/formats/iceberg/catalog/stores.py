"""Where a table's metadata is -> the one store that all of its files are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.formats.iceberg.metadata.locations import MACHINE, require_in, root_of
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, properties, text
from nightkeep.storage import LocalStorage, ObjectStorage, Storage
from nightkeep.storage.clients import relevant

_FOLDERS: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def store_of(location: str, catalog: Mapping[str, str]) -> Storage:
    """This machine, or the bucket of a location as a whole; what the `catalog`'s properties say of the way to it is
    stronger than the environment. Nothing is asked of it."""
    root = root_of(location)
    return LocalStorage(MACHINE) if root == MACHINE else ObjectStorage(root, relevant(catalog))


def require_one_store(storage: Storage, raw: Raw, location: str) -> None:
    """Raises RefusedTable where metadata `raw` at `location` puts new files elsewhere than into `storage`."""
    stated = properties(raw, subject=location)
    folders = (text(raw, "location", subject=location), *(stated[key] for key in _FOLDERS if key in stated))
    for each in (location, *folders):
        if each:
            require_in(storage, each)
