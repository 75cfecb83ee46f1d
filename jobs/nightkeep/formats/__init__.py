"""Format name -> module, imported when a table of it is first opened."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from nightkeep.errors import AddressError, Unreachable
from nightkeep.model import Address
from nightkeep.model.metastore_table import metastore_table
from nightkeep.protocol import OpenTable

FORMATS = {name: f"nightkeep.formats.{name}.format" for name in ("delta", "iceberg", "memory", "paimon")}

OF_ONE_PROCESS = frozenset({"memory"})
"""Formats of tables that no other process can open."""


_OF_EVERY_TASK: Final = (
    "numpy",
    "pyarrow.parquet",
    "polars",
    "nightkeep.kernels.lookup",
    "nightkeep.kernels.merge",
    "nightkeep.kernels.fingerprint",
)


def task_modules() -> tuple[str, ...]:
    """Modules that tasks on tables need: of every format, and of those that this process has opened a table of."""
    return (*_OF_EVERY_TASK, *(module for module in FORMATS.values() if module in sys.modules))


def open_table(address: Address) -> OpenTable:
    """The table behind `address`. Raises AddressError for a format we do not have or a location without a table."""
    try:
        module = import_module(FORMATS[address.format])
    except KeyError:
        known = ", ".join(sorted(FORMATS))
        raise AddressError(f"{address}: expected a table of format {known}, found {address.format}") from None
    table: OpenTable = module.open_table(_placed(address))
    return table


def _placed(address: Address) -> Address:
    """The address, if it has a place. Raises Unreachable for a name whose metastore did not answer when it was asked
    for the place: what holds for a run is asked once."""
    if address.format == "iceberg" or metastore_table(address.location) is None:
        return address
    from nightkeep.metastores.locating import located  # noqa: PLC0415 -- clients of metastores

    located(address)
    raise Unreachable(str(address), "a place since the run began", "it only now; run again")
