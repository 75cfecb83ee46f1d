"""Snapshot -> new metadata file -> one conditional UPDATE of the row that names the table's metadata file.

The UPDATE is that of Iceberg's JdbcCatalog (JdbcTableOperations.java) and pyiceberg's SqlCatalog. We write the metadata
ourselves: pyiceberg drops fields that it does not know, and cannot write format version 3.
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from sqlalchemy import ColumnElement, event, select, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from nightkeep.errors import NotCreated
from nightkeep.formats.iceberg.catalog.failures import reason
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, properties, text, with_snapshot
from nightkeep.storage import Storage

BUSY_MS: Final = 30_000
"""How long a commit waits for another one to leave a SQLite file; Python's default of 5 s is short for a slow disk."""
_VERSION: Final = re.compile(r"v?(\d+)[-.]")


def wait_for_others(catalog: SqlCatalog) -> None:
    """Let connections to a SQLite file wait while other connections write to it."""
    if catalog.engine.dialect.name == "sqlite":
        event.listen(catalog.engine, "connect", _set_busy_timeout)
        # Connections that are already open would not wait.
        catalog.engine.dispose()


def metadata_location(catalog: SqlCatalog, identifier: tuple[str, ...]) -> str | None:
    """The location of the table's current metadata; None if there is no such table. Raises SQLAlchemyError."""
    statement = select(IcebergTables.metadata_location).where(*_row(catalog, identifier))
    with catalog.engine.connect() as connection:
        location: str | None = connection.execute(statement).scalar_one_or_none()
    return location


def commit(
    catalog: SqlCatalog, identifier: tuple[str, ...], storage: Storage, *, snapshot: Raw, before: tuple[Raw, str]
) -> bool:
    """Add `snapshot` to the metadata and location `before`. Returns False if they are no longer current.

    Raises OSError if the outcome is unknown; the new metadata file is then kept.
    """
    subject = ".".join(identifier)
    raw, location = before
    after = with_snapshot(raw, snapshot, location=location, subject=subject)
    return after is not None and replace(catalog, identifier, storage, after=after, location=location)


def replace(catalog: SqlCatalog, identifier: tuple[str, ...], storage: Storage, *, after: Raw, location: str) -> bool:
    """Replace the table's metadata at `location` by `after`. Returns False if `location` is no longer current.

    Raises OSError if the outcome is unknown; the new metadata file is then kept.
    """
    subject = ".".join(identifier)
    ours = next_location(after, location, subject=subject)
    data = json.dumps(after).encode()
    try:
        storage.put(storage_name(ours), gzip.compress(data, mtime=0) if ours.endswith(_GZIP) else data)
    except OSError as failure:
        # The catalog does not know this file yet.
        storage.delete_all([storage_name(ours)])
        raise NotCreated(ours, "table metadata that can be written", str(failure)) from failure
    if _swapped(catalog, identifier, old=location, new=ours):
        return True
    # The catalog refused the name, and nobody else knows it.
    storage.delete(storage_name(ours))
    return False


def next_location(raw: Raw, location: str, *, subject: str) -> str:
    """A new, unique location for the metadata that follows the one at `location`, named as Iceberg Java does."""
    stated = properties(raw, subject=subject)
    folder = stated.get("write.metadata.path") or f"{text(raw, 'location', subject=subject).rstrip('/')}/metadata"
    past = _VERSION.match(location.rpartition("/")[2])
    number = int(past[1]) + 1 if past else 0
    compressed = stated.get("write.metadata.compression-codec", "none").lower() == "gzip"
    return f"{folder.rstrip('/')}/{number:05d}-{uuid.uuid4()}{_GZIP if compressed else _PLAIN}"


def _swapped(catalog: SqlCatalog, identifier: tuple[str, ...], *, old: str, new: str) -> bool:
    condition = (*_row(catalog, identifier), IcebergTables.metadata_location == old)
    statement = update(IcebergTables).where(*condition)
    statement = statement.values(metadata_location=new, previous_metadata_location=old)
    try:
        with catalog.engine.begin() as connection:
            changed = connection.execute(statement).rowcount
    except SQLAlchemyError as failure:
        raise OSError(
            f"{'.'.join(identifier)}: expected an answer of catalog {catalog.name}, found {reason(failure)}"
        ) from failure
    if changed not in (0, 1):
        found = f"{changed} rows"
        raise OSError(f"{'.'.join(identifier)}: expected one changed row in catalog {catalog.name}, found {found}")
    return changed == 1


def _row(catalog: SqlCatalog, identifier: tuple[str, ...]) -> tuple[ColumnElement[bool], ...]:
    return (
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == Catalog.namespace_to_string(identifier[:-1]),
        IcebergTables.table_name == identifier[-1],
    )


def _set_busy_timeout(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    cursor.close()


_PLAIN: Final = ".metadata.json"
_GZIP: Final = ".gz.metadata.json"
