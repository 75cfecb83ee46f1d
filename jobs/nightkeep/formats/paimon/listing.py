"""A warehouse -> its tables: <database>.db/<table>, where a table is a folder with schema files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nightkeep.formats.paimon.metadata.snapshot_files import numbered
from nightkeep.limits import LISTED
from nightkeep.model.listed_tables import ListedTable, UnlistedPlace
from nightkeep.storage import NoAnswer, Storage, answers_of, location_of, open_storage

_DATABASE: Final = ".db"


def list_tables(location: str, depth: int) -> Iterator[ListedTable | UnlistedPlace]:
    """The tables of the warehouse. Its layout has no other depth. Raises AddressError, and OSError for a store that
    does not answer."""
    storage = open_storage(location)
    databases = [folder for folder in storage.folders("") if folder.endswith(_DATABASE) and folder != _DATABASE]
    seen = len(databases)
    LISTED.require(seen, location)
    for database, found in answers_of(databases, storage.folders):
        if isinstance(found, NoAnswer):
            yield UnlistedPlace(database, found.why)
            continue
        seen += len(found)
        LISTED.require(seen, location)
        for table, is_table in answers_of(found, lambda folder: _has_schema(storage, folder)):
            if isinstance(is_table, NoAnswer):
                yield UnlistedPlace(table, is_table.why)
            elif is_table:
                parts = (database.removesuffix(_DATABASE), table.rpartition("/")[2])
                yield ListedTable(parts, location_of(location, table))


def _has_schema(storage: Storage, table: str) -> bool:
    return any(numbered(file.name, "schema-") is not None for file in storage.list(f"{table}/schema"))
