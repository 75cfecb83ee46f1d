"""A Glue catalog -> its entries: all of them, a page at a time, or one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError
from pyiceberg.catalog.glue import GLUE_MAX_RETRIES, GlueCatalog

from nightkeep.limits import LISTED
from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.glue_answers import GONE, asking_glue, code_of
from nightkeep.model.listed_tables import UnlistedPlace

RETRIES: Final = 4
"""Requests until Glue counts as down, some seconds in all. pyiceberg's own number takes minutes."""


def open_glue(name: str, settings: Mapping[str, Any]) -> GlueCatalog:
    """pyiceberg's catalog, called `name`. Raises AddressError, OSError."""
    # pyiceberg passes on the text that an environment variable is, which Amazon's client does not take.
    retries = {GLUE_MAX_RETRIES: int(settings[GLUE_MAX_RETRIES])} if GLUE_MAX_RETRIES in settings else {}
    with asking_glue(f"catalog {name}"):
        return GlueCatalog(name, **{**settings, **retries})


def entries(settings: Mapping[str, Any]) -> Iterator[MetastoreEntry | UnlistedPlace]:
    """Every entry, and the databases that went away meanwhile. Raises AddressError, OSError, RefusedTable for more
    than the limit."""
    subject, client = _subject(settings), _client(settings)
    seen = 0
    with asking_glue(subject):
        for found in client.get_paginator("get_databases").paginate():
            seen += len(found["DatabaseList"])
            LISTED.require(seen, subject)
            for database in found["DatabaseList"]:
                for each in _of_database(client, database["Name"]):
                    seen += 1
                    LISTED.require(seen, subject)
                    yield each


def entry(settings: Mapping[str, Any], database: str, name: str) -> MetastoreEntry | None:
    """The table's entry; None if there is none. Raises AddressError, OSError."""
    try:
        with asking_glue(_subject(settings)):
            return entry_of(database, _client(settings).get_table(DatabaseName=database, Name=name)["Table"])
    except ClientError as failure:
        if code_of(failure) == GONE:
            return None
        raise


def entry_of(database: str, table: Mapping[str, Any]) -> MetastoreEntry:
    stored = table.get("StorageDescriptor") or {}
    kind = "LINK" if table.get("TargetTable") else table.get("TableType") or ""
    return MetastoreEntry(
        database,
        table["Name"],
        kind,
        stored.get("Location") or "",
        dict(table.get("Parameters") or {}),
        dict((stored.get("SerdeInfo") or {}).get("Parameters") or {}),
        stored.get("InputFormat") or "",
    )


def _of_database(client: Any, database: str) -> Iterator[MetastoreEntry | UnlistedPlace]:
    try:
        for found in client.get_paginator("get_tables").paginate(DatabaseName=database):
            yield from (entry_of(database, table) for table in found["TableList"])
    except ClientError as failure:
        # The others are asked all the same: rights may be given for each database.
        yield UnlistedPlace(database, str(failure))


def _client(settings: Mapping[str, Any]) -> Any:
    return open_glue(_subject(settings), {GLUE_MAX_RETRIES: RETRIES, **settings}).glue


def _subject(settings: Mapping[str, Any]) -> str:
    return f"glue://{settings['glue.region']}"
