"""Settings of a catalog -> pyiceberg's catalog, opened as we need it, and the names of metadata files in it."""

from __future__ import annotations

import importlib
from typing import Any, Final, Protocol, cast

from pyiceberg.catalog import Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from nightkeep.formats.iceberg.catalog.failures import connecting
from nightkeep.formats.iceberg.catalog.metadata_swap import Pointers
from nightkeep.formats.iceberg.catalog.rest_catalog import open_rest
from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers, wait_for_others

_OF_AN_EXTRA: Final = {
    CatalogType.HIVE: "nightkeep.formats.iceberg.catalog.hive_pointers",
    CatalogType.GLUE: "nightkeep.formats.iceberg.catalog.glue_pointers",
}
"""Modules that need packages which not everybody installs."""


class _CatalogModule(Protocol):
    def open_catalog(self, name: str, settings: dict[str, Any]) -> Catalog: ...

    def pointers(self, catalog: Catalog) -> Pointers: ...


def connect(name: str, settings: dict[str, Any]) -> Catalog:
    """The catalog of these settings. Raises AddressError, Unreachable."""
    # By default pyiceberg creates a catalog's tables in any database that it opens. Reading must not. A connection
    # that a server or a firewall has closed since it was last used is replaced.
    given = {"init_catalog_tables": "false", "pool_pre_ping": "true", **settings}
    with connecting(name):
        kind = _kind(name, given)
        if kind is CatalogType.REST:
            return open_rest(name, given)
        if kind in _OF_AN_EXTRA:
            return _module(kind).open_catalog(name, given)
        opened = load_catalog(name, **given)
    if isinstance(opened, SqlCatalog):
        wait_for_others(opened)
    return opened


def pointers_of(catalog: Catalog) -> Pointers | None:
    """The names of metadata files in a catalog that holds no more of a table; None for a catalog of another kind."""
    if isinstance(catalog, SqlCatalog):
        return SqlPointers(catalog)
    kind = next((kind for kind, name in _CLASSES.items() if type(catalog).__name__ == name), None)
    return _module(kind).pointers(catalog) if kind else None


_CLASSES: Final = {CatalogType.HIVE: "HiveCatalog", CatalogType.GLUE: "GlueCatalog"}


def _kind(name: str, settings: dict[str, Any]) -> CatalogType | None:
    """What pyiceberg would open; None for a class of somebody else. Raises ValueError."""
    if "py-catalog-impl" in settings:
        return None
    stated = settings.get("type")
    return CatalogType(str(stated).lower()) if stated else infer_catalog_type(name, settings)


def _module(kind: CatalogType) -> _CatalogModule:
    return cast(_CatalogModule, importlib.import_module(_OF_AN_EXTRA[kind]))
