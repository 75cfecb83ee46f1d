"""The samples as warehouses that a policy names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from samples.iceberg_places import place

from nightkeep.policy import PolicyFile, load_usable

SAMPLES = Path(__file__).parents[2] / "samples"
PAIMON = (
    "baskets",
    "customers",
    "events_input",
    "events_raw",
    "ledger",
    "orders",
    "parcels",
    "positions",
    "prices",
    "stock",
    "untouched",
    "visits",
)
DELTA = ("accounts", "clicks", "readings")
ICEBERG = ("customers", "orders")

DISCOVER = """\
version: 1
discover:
  - paimon: warehouse/paimon
  - {delta: warehouse/delta/shop.db, name: "lake.{name}"}
  - {iceberg: lake, name: "stream.{table}"}
"""


def place_samples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of all samples below `warehouse`, with the catalog's settings in the environment."""
    for name in ("paimon", "delta"):
        shutil.copytree(SAMPLES / name, folder / "warehouse" / name)
    database = place(SAMPLES / "iceberg", folder / "warehouse" / "iceberg")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{folder}/warehouse/iceberg/catalog.db")
    assert database
    return folder


def policy(folder: Path, text: str) -> PolicyFile:
    (folder / "tables.yaml").write_text(text)
    return load_usable(folder / "tables.yaml")


def paimon_table(folder: Path) -> Path:
    """A folder that a listing takes for a Paimon table."""
    (folder / "schema").mkdir(parents=True)
    (folder / "schema/schema-0").write_text("{}")
    return folder


def delta_table(folder: Path) -> Path:
    """A folder that a listing takes for a Delta table."""
    (folder / "_delta_log").mkdir(parents=True)
    return folder
