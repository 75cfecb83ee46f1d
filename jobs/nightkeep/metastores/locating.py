"""The address of a table by its name in a metastore -> its address by its place, as the metastore has it now."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from nightkeep.errors import AddressError, Unreachable
from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.listing import client_of
from nightkeep.metastores.settings import catalog_of, settings_of
from nightkeep.metastores.table_kind import PlacedTable, table_kind
from nightkeep.model import Address
from nightkeep.model.dotted import join_name
from nightkeep.model.metastore_table import MetastoreTable, metastore_table

SILENT_SECONDS: Final = 60.0
"""How long a metastore that does not answer is not asked again: each table would wait for as long as the first."""
_SILENT: Final[dict[str, tuple[float, str]]] = {}
"""When a metastore did not answer last, and why."""
_BRANCH: Final = "$branch_"


def located(address: Address) -> Address:
    """The address with the table's place, under the same name. An address that has a place stays as it is.

    An Iceberg table is asked of its catalog each time; only the catalog's own name may take the place of its address.
    Raises AddressError if there is no such table of this format, and Unreachable.
    """
    named = metastore_table(address.location)
    if named is None:
        return address
    if address.format == "iceberg":
        catalog = catalog_of(named.metastore) or named.metastore
        name, mark, branch = named.name.partition(_BRANCH)
        return replace(address, location=f"{catalog}/{join_name((named.database, name))}{mark}{branch}")
    name, mark, branch = named.name.partition(_BRANCH) if address.format == "paimon" else (named.name, "", "")
    entry = _entry(replace(named, name=name), address)
    kind = table_kind(entry)
    if not isinstance(kind, PlacedTable) or kind.format != address.format:
        found = f"one of {kind.format}" if isinstance(kind, PlacedTable) else f"{kind.name}"
        raise AddressError(f"{address}: expected a table of {address.format}, found {found}")
    if not kind.location:
        raise AddressError(f"{address}: expected the place of its files, found {entry.location!r:.200}")
    return replace(address, location=f"{kind.location}{mark}{branch}")


def _entry(named: MetastoreTable, address: Address) -> MetastoreEntry:
    settings, (since, why) = settings_of(named.metastore), _SILENT.get(named.metastore, (0.0, ""))
    if why and time.monotonic() - since < SILENT_SECONDS:
        raise Unreachable(str(address), f"an answer of {named.metastore}", why)
    try:
        entry = client_of(settings).entry(settings, named.database, named.name)
    except OSError as failure:
        _SILENT[named.metastore] = (time.monotonic(), str(failure))
        raise Unreachable(str(address), f"an answer of {named.metastore}", str(failure)) from failure
    if entry is None:
        raise AddressError(f"{address}: expected a table, found none of that name in {named.metastore}")
    return entry
