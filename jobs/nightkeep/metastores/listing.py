"""A metastore -> its tables of all our formats, and what else it has."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

from nightkeep.errors import AddressError
from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.settings import catalog_of, settings_of
from nightkeep.metastores.table_kind import OtherKind, table_kind
from nightkeep.model.dotted import join_name
from nightkeep.model.listed_tables import ListedTable, OtherTable, UnlistedPlace

_MODULES: Final = {"hive": "nightkeep.metastores.hive", "glue": "nightkeep.metastores.glue"}
"""They need packages which not everybody installs."""


class MetastoreClient(Protocol):
    """What the modules of both kinds have."""

    def entries(self, settings: Mapping[str, Any]) -> Iterator[MetastoreEntry | UnlistedPlace]: ...

    def entry(self, settings: Mapping[str, Any], database: str, name: str) -> MetastoreEntry | None: ...


def list_tables(location: str, depth: int) -> Iterator[ListedTable | OtherTable | UnlistedPlace]:
    """What the metastore at `location` names. A metastore has no other depth.

    Raises AddressError, RefusedTable for more names than the limit, and OSError if it does not answer."""
    settings, catalog = settings_of(location), catalog_of(location) or location
    for each in client_of(settings).entries(settings):
        yield each if isinstance(each, UnlistedPlace) else _listed(each, catalog)


def client_of(settings: Mapping[str, Any]) -> MetastoreClient:
    """The client of these settings. Raises AddressError if its packages are not installed."""
    kind = str(settings["type"])
    with _installed(kind):
        return cast(MetastoreClient, importlib.import_module(_MODULES[kind]))


def _listed(entry: MetastoreEntry, catalog: str) -> ListedTable | OtherTable | UnlistedPlace:
    kind = table_kind(entry)
    if isinstance(kind, OtherKind):
        return OtherTable(entry.parts, kind.name)
    if kind.format == "iceberg":
        return ListedTable(entry.parts, f"{catalog}/{join_name(entry.parts)}", kind.format)
    if not kind.location:
        return UnlistedPlace(join_name(entry.parts), f"expected the place of its files, found {entry.location!r:.200}")
    return ListedTable(entry.parts, kind.location, kind.format)


@contextmanager
def _installed(kind: str) -> Iterator[None]:
    try:
        yield
    except ImportError as failure:
        raise AddressError(
            f"expected the packages of a client of {kind}, found {failure}; install nightkeep[{kind}]"
        ) from failure
