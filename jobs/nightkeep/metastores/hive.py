"""A Hive metastore -> its entries: all of them, some hundred at a time, or one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Table,
    UnknownDBException,
)

from nightkeep.limits import LISTED
from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.hive_connections import MetastoreConnections
from nightkeep.model.listed_tables import UnlistedPlace

PAGE: Final = 500
"""Tables in one answer of the metastore."""
_OF_ONE: Final = (InvalidOperationException, MetaException, NoSuchObjectException, UnknownDBException)


def entries(settings: Mapping[str, Any]) -> Iterator[MetastoreEntry | UnlistedPlace]:
    """Every entry, and the databases that cannot be listed. Raises OSError, RefusedTable for more than the limit."""
    seen = 0
    with MetastoreConnections(settings) as client:
        databases = client.get_all_databases()
        LISTED.require(len(databases), str(settings["uri"]))
        for database in sorted(databases):
            try:
                names = client.get_all_tables(database)
            except _OF_ONE as failure:
                yield _unlisted(database, failure)
                continue
            seen += len(names)
            LISTED.require(seen, str(settings["uri"]))
            yield from _of_database(client, database, sorted(names))


def entry(settings: Mapping[str, Any], database: str, name: str) -> MetastoreEntry | None:
    """The table's entry; None if there is none. Raises OSError."""
    with MetastoreConnections(settings) as client:
        try:
            return entry_of(client.get_table(database, name))
        except NoSuchObjectException:
            return None


def entry_of(table: Table) -> MetastoreEntry:
    stored = table.sd
    serde = stored.serdeInfo if stored else None
    return MetastoreEntry(
        table.dbName or "",
        table.tableName or "",
        table.tableType or "",
        (stored.location if stored else "") or "",
        dict(table.parameters or {}),
        dict((serde.parameters if serde else None) or {}),
        (stored.inputFormat if stored else "") or "",
    )


def _of_database(client: Client, database: str, names: list[str]) -> Iterator[MetastoreEntry | UnlistedPlace]:
    for start in range(0, len(names), PAGE):
        try:
            found = client.get_table_objects_by_name(database, names[start : start + PAGE])
        except _OF_ONE as failure:
            yield _unlisted(database, failure)
            return
        yield from sorted(map(entry_of, found), key=lambda each: each.name)


def _unlisted(database: str, failure: Exception) -> UnlistedPlace:
    return UnlistedPlace(database, str(getattr(failure, "message", None) or type(failure).__name__))
