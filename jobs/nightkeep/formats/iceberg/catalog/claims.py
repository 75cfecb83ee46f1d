"""Catalog -> the folders that other tables claim, and the folders that belong to this table.

A location in table metadata proves nothing: any writer can set it. Only the catalog proves it: the folder of the
metadata file that it names belongs to the table. Any other folder must be confirmed in another way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, RESTError
from pyiceberg.typedef import Identifier

from nightkeep.errors import EvidenceError, RefusedTable
from nightkeep.formats.iceberg.catalog.listed_names import listed_names
from nightkeep.formats.iceberg.metadata.locations import root_of, stored_name
from nightkeep.formats.iceberg.metadata.metadata_beginning import location_in
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, properties, text
from nightkeep.storage import Storage, is_within

_PATHS: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_THREADS: Final = 8
_REMEMBERED_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Claim:
    """A table, by namespace and name, with the locations of its metadata file and, if known, of the table itself."""

    table: Identifier
    metadata: str
    location: str | None = None

    def folders(self, root: str) -> frozenset[str]:
        """The folders that the table claims in the storage with this root."""
        folders = {own_folder(self.metadata)} if root_of(self.metadata) == root else set()
        if self.location and root_of(self.location) == root:
            folders.add(stored_name(self.location.rstrip("/")))
        return frozenset(folders)


def own_folder(location: str) -> str:
    """The folder of the table whose metadata file is at `location`. Raises RefusedTable for the root of a store.

    It is the parent of the folder `metadata`, or the file's own folder if that has another name.
    """
    folder = stored_name(location).rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    own = above if last == "metadata" and above else folder
    if not own:
        raise RefusedTable(location, "its metadata file is in no folder", "give the table a folder of its own")
    return own


def bounds(storage: Storage, loaded: tuple[Raw, str], others: Callable[[], tuple[Claim, ...]]) -> tuple[str, ...]:
    """The folders in which files of the table may be created.

    They are its own folder, and the folders outside that its metadata names and no other table claims.
    """
    raw, location = loaded
    stated = properties(raw, subject=location)
    named = (text(raw, "location", subject=location), *(stated[key] for key in _PATHS if stated.get(key)))
    folders = dict.fromkeys(stored_name(each.rstrip("/")) for each in named if root_of(each) == storage.root)
    own = (own_folder(location),) if location else ()
    outside = [folder for folder in folders if folder and not any(is_within(each, folder) for each in own)]
    if not outside:
        return own
    claimed = {folder for claim in others() for folder in claim.folders(storage.root)}
    return (*own, *(folder for folder in outside if not any(is_within(each, folder) for each in claimed)))


def require_unclaimed(table: str, root: str, folder: str, claims: tuple[Claim, ...]) -> None:
    """Raises RefusedTable if `folder` is within a folder that another table claims."""
    for claim in claims:
        for claimed in claim.folders(root):
            if is_within(claimed, folder):
                name = ".".join(claim.table)
                feature = f"its folder {folder} is claimed by table {name} of the same catalog, whose own is {claimed}"
                raise RefusedTable(
                    table, feature, "give each table a folder of its own; dropping one would take the files of both"
                )


def claims(catalog: Catalog, identifier: Identifier) -> tuple[Claim, ...]:
    """The claims of all other tables that the catalog lists. A table that cannot be loaded makes none."""
    return tuple(claim for claim in _remembered(catalog) if claim.table != identifier)


def located(storage: Storage, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """The claims, with locations that the catalog did not give read from metadata files in `storage`."""

    def with_location(claim: Claim) -> Claim:
        if claim.location is not None or root_of(claim.metadata) != storage.root:
            return claim
        try:
            return Claim(claim.table, claim.metadata, location_in(storage, claim.metadata))
        except (EvidenceError, RefusedTable, OSError):
            # For a broken table the catalog's own answer is all there is.
            return claim

    with ThreadPoolExecutor(_THREADS) as threads:
        return tuple(threads.map(with_location, claims))


_KNOWN: Final[dict[int, tuple[float, tuple[Claim, ...]]]] = {}
"""Time and claims by the id of the catalog object. Claims are listed again after a while."""


def _remembered(catalog: Catalog) -> tuple[Claim, ...]:
    at, claimed = _KNOWN.get(id(catalog), (0.0, ()))
    if not at or time.monotonic() - at > _REMEMBERED_SECONDS:
        with ThreadPoolExecutor(_THREADS) as threads:
            answers = threads.map(partial(_claim_of, catalog), listed_names(catalog, _no_claim))
            claimed = tuple(claim for claim in answers if claim is not None)
        _KNOWN[id(catalog)] = time.monotonic(), claimed
    return claimed


def _no_claim(namespace: Identifier, failure: Exception) -> None:
    """Tables of a namespace that cannot be listed cannot be loaded either."""


def _claim_of(catalog: Catalog, identifier: Identifier) -> Claim | None:
    try:
        table = catalog.load_table(identifier)
    except (NoSuchTableError, RESTError, ValueError):
        return None
    return Claim(identifier, table.metadata_location, table.metadata.location)
