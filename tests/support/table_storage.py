"""An opened table -> the store of its files."""

from __future__ import annotations

from nightkeep.formats.iceberg.catalog.catalog import open_handle
from nightkeep.protocol import E, S, T, Table, U
from nightkeep.storage import Storage, open_storage


def storage_of(table: Table[S, U, T, E]) -> Storage:
    location = table.address.location
    return open_handle(location).storage if table.address.format == "iceberg" else open_storage(location)
