"""A folder -> the Delta tables in it, down to a depth. A table is a folder with a log; nothing is looked for inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nightkeep.limits import LISTED
from nightkeep.model.listed_tables import ListedTable, UnlistedPlace
from nightkeep.storage import NoAnswer, Storage, answers_of, location_of, open_storage

_LOG: Final = "_delta_log"
_DATABASE: Final = ".db"


def list_tables(location: str, depth: int) -> Iterator[ListedTable | UnlistedPlace]:
    """The tables in the folder. `depth` 1 are those directly in it. Raises AddressError, RefusedTable for more folders
    than the limit, and OSError for a store that does not answer."""
    storage = open_storage(location)
    if _LOG in storage.folders(""):
        yield ListedTable((location.rstrip("/").rpartition("/")[2],), location)
        return
    level: Sequence[str] = _visible(storage.folders(""))
    seen = 0
    for left in reversed(range(depth)):
        seen += len(level)
        LISTED.require(seen, location)
        below = list[str]()
        yield from _tables(storage, location, level, below)
        level = below if left else ()


def _tables(
    storage: Storage, location: str, folders: Sequence[str], below: list[str]
) -> Iterator[ListedTable | UnlistedPlace]:
    """Those of the folders that are tables. Folders of the others are added to `below`."""
    for folder, found in answers_of(folders, storage.folders):
        if isinstance(found, NoAnswer):
            yield UnlistedPlace(folder, found.why)
        elif f"{folder}/{_LOG}" in found:
            yield ListedTable(_parts(folder), location_of(location, folder))
        else:
            below += _visible(found)


def _parts(folder: str) -> tuple[str, ...]:
    """The names on the way to the table. Spark's databases are folders with the suffix .db."""
    *databases, table = folder.split("/")
    return (*(name.removesuffix(_DATABASE) or name for name in databases), table)


def _visible(folders: Sequence[str]) -> list[str]:
    """Without folders that engines hide: checkpoints, trash, staged files."""
    return [folder for folder in folders if not folder.rpartition("/")[2].startswith((".", "_"))]
