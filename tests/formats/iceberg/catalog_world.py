"""Catalogs as Nightkeep is told of them, handles of tables in them, and snapshots made by hand."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.drivers.iceberg_tables import Table, Warehouse

from nightkeep.formats.iceberg.catalog.catalog import TableHandle, parse_location
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, load
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

MACHINE = LocalStorage("/")


def configure(monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, settings: Mapping[str, str] | None = None) -> None:
    """As an operator does, by the environment."""
    uri = warehouse.uri or f"sqlite:///{warehouse.database}"
    for key, value in {"URI": uri, **(settings or {})}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{warehouse.name.upper()}__{key}", value)


def handle_of(table: Table) -> TableHandle:
    return parse_location(f"{table.warehouse.name}/{table.name}", MACHINE)


def address_of(table: Table) -> Address:
    return Address("iceberg", f"{table.warehouse.name}/{table.name}", table.name)


def loaded(table: Table, version: int | None = None) -> IcebergSnapshot:
    return load(address_of(table), handle_of(table), version)


def next_snapshot(raw: Raw, number: int = 7) -> dict[str, Any]:
    """A snapshot with the files of the current one, as a rewrite of nothing would make it."""
    before = head(raw, subject="hand")
    assert before.current is not None
    current = before.snapshots[before.current]
    rows = {} if before.next_row_id is None else {"first-row-id": before.next_row_id, "added-rows": 0}
    return {
        "snapshot-id": number,
        "parent-snapshot-id": before.current,
        "sequence-number": before.sequence_number + 1,
        "timestamp-ms": before.updated_ms + 1,
        "manifest-list": current["manifest-list"],
        "summary": {"operation": "replace", "nightkeep.run": "nightkeep-0"},
        "schema-id": raw["current-schema-id"],
        **rows,
    }
