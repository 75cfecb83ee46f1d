"""Rows as pyiceberg reads them, in this process. It refuses tables with equality deletes, and reads vectors of v3.

Its Avro decoder trusts what it reads: a manifest of partitions by a fixed column, which Java writes with lengths that
their schema does not have, ends the process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.table import StaticTable
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lake_rows import Rows, rows_of


def pyiceberg_read(
    metadata: Path,
    *,
    snapshot: int | None = None,
    where: str | BooleanExpression | None = None,
    columns: tuple[str, ...] = ("*",),
) -> Rows:
    """Rows of a table by its metadata file, in the order of their JSON; `where` is pyiceberg's text or expression."""
    table = StaticTable.from_metadata(str(metadata))
    scan = table.scan(row_filter=where or AlwaysTrue(), selected_fields=columns, snapshot_id=snapshot)
    return rows_of(scan.to_arrow()).ordered()


@contextmanager
def pyiceberg_catalog(warehouse: Warehouse) -> Iterator[Catalog]:
    """The warehouse's catalog as pyiceberg has it."""
    if warehouse.uri is not None:
        yield RestCatalog(warehouse.name, uri=warehouse.uri)
        return
    catalog = SqlCatalog(warehouse.name, uri=f"sqlite:///{warehouse.database}", warehouse=warehouse.location)
    try:
        yield catalog
    finally:
        catalog.close()
