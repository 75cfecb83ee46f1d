"""The table `iceberg_tables` of a database -> the names of metadata files, replaced by one conditional UPDATE.

The UPDATE is that of Iceberg's JdbcCatalog (JdbcTableOperations.java) and pyiceberg's SqlCatalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from sqlalchemy import ColumnElement, event, select, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from nightkeep.formats.iceberg.catalog.claims import Claim
from nightkeep.formats.iceberg.catalog.failures import reason
from nightkeep.formats.iceberg.metadata.table_metadata import Raw

BUSY_MS: Final = 30_000
"""How long a commit waits for another one to leave a SQLite file; Python's default of 5 s is short for a slow disk."""
_LOST: Final = frozenset({"40001", "40P01"})
"""SQLSTATE of a transaction that certainly changed nothing, as another one was faster: databases may be set to
isolate transactions more than by default, and then they end the second one instead of repeating its condition."""


@dataclass(frozen=True, slots=True)
class SqlPointers:
    """Those of a SQL catalog."""

    catalog: SqlCatalog

    def metadata_location(self, identifier: tuple[str, ...]) -> str | None:
        statement = select(IcebergTables.metadata_location).where(*self._row(identifier))
        with self.catalog.engine.connect() as connection:
            location: str | None = connection.execute(statement).scalar_one_or_none()
        return location

    def swap(self, identifier: tuple[str, ...], *, old: str, new: str, after: Raw) -> bool:
        condition = (*self._row(identifier), IcebergTables.metadata_location == old)
        statement = update(IcebergTables).where(*condition)
        statement = statement.values(metadata_location=new, previous_metadata_location=old)
        subject = ".".join(identifier)
        try:
            with self.catalog.engine.begin() as connection:
                changed = connection.execute(statement).rowcount
        except SQLAlchemyError as failure:
            if isinstance(failure, DBAPIError) and getattr(failure.orig, "pgcode", None) in _LOST:
                return False
            expected = f"an answer of catalog {self.catalog.name}"
            raise OSError(f"{subject}: expected {expected}, found {reason(failure)}") from failure
        if changed not in (0, 1):
            raise OSError(f"{subject}: expected one changed row in catalog {self.catalog.name}, found {changed} rows")
        return changed == 1

    def claims(self) -> Iterator[Claim]:
        columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
        statement = select(*columns).where(IcebergTables.catalog_name == self.catalog.name)
        with self.catalog.engine.connect() as connection:
            for namespace, name, location in connection.execute(statement):
                if location:
                    yield Claim((*Catalog.identifier_to_tuple(namespace), name), location)

    def _row(self, identifier: tuple[str, ...]) -> tuple[ColumnElement[bool], ...]:
        return (
            IcebergTables.catalog_name == self.catalog.name,
            IcebergTables.table_namespace == Catalog.namespace_to_string(identifier[:-1]),
            IcebergTables.table_name == identifier[-1],
        )


def wait_for_others(catalog: SqlCatalog) -> None:
    """Let connections to a SQLite file wait while other connections write to it."""
    if catalog.engine.dialect.name == "sqlite":
        event.listen(catalog.engine, "connect", _set_busy_timeout)
        # Connections that are already open would not wait.
        catalog.engine.dispose()


def _set_busy_timeout(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    cursor.close()
