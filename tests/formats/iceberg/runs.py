"""Tables of SQLite catalogs, cared for as a night does it, and what is left in their folders."""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse

from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.model import Address, Operation, run_token
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

COLUMNS: tuple[Column, ...] = (("id", "long"), ("day", "string"), ("price", "double"), ("note", "string"))
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


def configure(warehouse: Warehouse, environ: Any = os.environ) -> None:
    """Lets pyiceberg find the catalog by name, in this process and in those that it starts."""
    prefix = f"PYICEBERG_CATALOG__{warehouse.name.upper()}"
    environ[f"{prefix}__TYPE"] = "sql"
    environ[f"{prefix}__URI"] = f"sqlite:///{warehouse.database}"
    environ[f"{prefix}__WAREHOUSE"] = warehouse.location


@contextmanager
def configured(warehouse: Warehouse) -> Iterator[Warehouse]:
    before = dict(os.environ)
    configure(warehouse)
    try:
        yield warehouse
    finally:
        os.environ.clear()
        os.environ.update(before)


def address(table: Table) -> Address:
    return Address("iceberg", f"{table.warehouse.name}/{table.name}", table.name)


def opened(table: Table) -> IcebergTable:
    found = open_table(address(table))
    return found


def folder(table: Table) -> Path:
    return table.metadata.parent.parent


def contents(table: Table) -> Mapping[str, bytes]:
    """Every file of the table by its name in storage."""
    # Java's local file system keeps checksums beside its files.
    found = (path for path in folder(table).rglob("*") if path.is_file() and path.suffix != ".crc")
    return {str(path)[1:]: path.read_bytes() for path in found}


@dataclass(frozen=True)
class Kept:
    """A table as it once was, to be put back where it was: metadata names files by their whole paths."""

    table: Table
    metadata: Path
    copy: Path

    @classmethod
    def of(cls, table: Table) -> "Kept":
        copy = table.warehouse.folder / "kept"
        return cls(table, table.metadata, Path(shutil.copytree(folder(table), copy)))

    def put_back(self) -> Table:
        there = self.metadata.parent.parent
        shutil.rmtree(there)
        shutil.copytree(self.copy, there)
        with closing(sqlite3.connect(self.table.warehouse.database)) as connection, connection:
            connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (f"file://{self.metadata}",))
        return self.table


def row(day: str, number: int, note: str = "as written") -> tuple[Any, ...]:
    return (number, day, number / 4, note)


def changed(java: IcebergJava, table: Table, *, version: int, properties: Mapping[str, str] | None = None) -> None:
    """Two days in three files each, of which upserts replaced some rows; and a day with nothing to do."""
    java.create(table, COLUMNS, Layout(partition=(("day", "identity"),), format_version=version, properties=properties))
    for start in (0, 100, 200):
        java.append(table, [row(day, number) for day in DAYS[:2] for number in range(start, start + 40)])
    java.append(table, [row(DAYS[2], number) for number in range(10)])
    updates = [("+U", row(day, number, "updated")) for day in DAYS[:2] for number in range(30, 110)]
    # The second one of a key replaces a row of the same checkpoint, by position.
    java.cdc(table, [*updates, ("+U", row(DAYS[0], 35, "again"))], keys=["id", "day"])
    java.cdc(table, [("-D", row(DAYS[1], 5))], keys=["id", "day"])


def care_for(
    table: Table, *, run_id: str = "night", operation: Operation = Operation.PERSIST_DELETES, **settings: Any
) -> RunDocument:
    policy = EffectivePolicy(address(table), Settings().model_copy(update=settings), {})
    order = Order(operation, run_id, str(table.warehouse.folder / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


def token(run_id: str = "night", operation: Operation = Operation.PERSIST_DELETES) -> str:
    return run_token(run_id, operation)
