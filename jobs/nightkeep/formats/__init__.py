"""Format name -> module, imported when a table of it is first opened."""

from __future__ import annotations

import importlib
import sys

from nightkeep.errors import AddressError
from nightkeep.model import Address
from nightkeep.protocol import OpenTable

FORMATS = {name: f"nightkeep.formats.{name}.format" for name in ("delta", "iceberg", "memory", "paimon")}

OF_ONE_PROCESS = frozenset({"memory"})
"""Formats of tables that no other process can open."""


def loaded() -> tuple[str, ...]:
    """Modules of the formats that this process has opened a table of."""
    return tuple(module for module in FORMATS.values() if module in sys.modules)


def open_table(address: Address) -> OpenTable:
    """The table behind `address`. Raises AddressError for a format we do not have or a location without a table."""
    try:
        module = importlib.import_module(FORMATS[address.format])
    except KeyError:
        known = ", ".join(sorted(FORMATS))
        raise AddressError(f"{address}: expected a table of format {known}, found {address.format}") from None
    table: OpenTable = module.open_table(address)
    return table
