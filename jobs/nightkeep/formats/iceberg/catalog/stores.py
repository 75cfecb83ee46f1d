"""Location of a table's metadata -> the one storage that holds all of the table's files."""

from __future__ import annotations

from typing import Final

from nightkeep.formats.iceberg.metadata.locations import MACHINE, require_in, root_of
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, properties, text
from nightkeep.storage import LocalStorage, Storage
from nightkeep.storage.hdfs.names import SCHEME as HDFS
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.objects.renewed import Options, Renewal
from nightkeep.storage.objects.store import ObjectStorage

_FOLDERS: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def store_of(location: str, options: Options, vended: Renewal | None = None) -> Storage:
    """The storage of a location: this machine, the whole bucket, or all of HDFS. Opens no connection.

    The `options` for the bucket's endpoint and credentials take precedence over the environment.
    """
    root = root_of(location)
    if root.startswith(f"{HDFS}:"):
        return HdfsStorage(root)
    return LocalStorage(MACHINE) if root == MACHINE else ObjectStorage(root, options, renewal=vended)


def require_one_store(storage: Storage, raw: Raw, location: str) -> None:
    """Raises RefusedTable if metadata `raw` at `location` puts new files outside `storage`."""
    stated = properties(raw, subject=location)
    folders = (text(raw, "location", subject=location), *(stated[key] for key in _FOLDERS if key in stated))
    for place in (location, *folders):
        if place:
            require_in(storage, place)
