"""Catalog -> the names of its tables, in all namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, RESTError
from pyiceberg.typedef import Identifier
from sqlalchemy import select

from nightkeep.limits import LISTED


def listed_names(catalog: Catalog, missed: Callable[[Identifier, Exception], None]) -> Iterator[Identifier]:
    """The tables of every namespace. `missed` is called for a namespace that cannot be listed.

    Raises RefusedTable for more namespaces than the limit."""
    pending = _first(catalog)
    seen = set[Identifier]()
    while pending:
        namespace = pending.pop()
        # A server that ignores the requested parent lists the same namespaces again.
        if namespace in seen:
            continue
        seen.add(namespace)
        LISTED.require(len(seen), catalog.name)
        try:
            yield from catalog.list_tables(namespace)
            if isinstance(catalog, RestCatalog):
                pending += catalog.list_namespaces(namespace)
        except (NoSuchNamespaceError, RESTError) as failure:
            missed(namespace, failure)


def _first(catalog: Catalog) -> list[Identifier]:
    """The namespaces to begin with. In a database, all that have tables: it need not know those above them."""
    if not isinstance(catalog, SqlCatalog):
        return list(catalog.list_namespaces())
    statement = select(IcebergTables.table_namespace).where(IcebergTables.catalog_name == catalog.name).distinct()
    with catalog.engine.connect() as connection:
        return [Catalog.identifier_to_tuple(name) for name in connection.execute(statement).scalars()]
