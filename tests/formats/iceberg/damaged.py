"""Golden tables in a catalog of their own, with leftovers, to be damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path

from samples.iceberg_places import Move, current_metadata
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.golden_tables import GOLDEN, WRITTEN_IN
from tests.formats.iceberg.runs import configure, folder, opened
from tests.formats.iceberg.sweeping import aged, now_ms, planted
from tests.retention.damage import World

from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import OpenFiles

NAMES = (
    "history_v2",
    "refs_v2",
    "merge_on_read_v2",
    "merge_on_read_v3",
    "statistics_v3",
    "changelog_v2",
    "specs_deleted_v2",
    "transforms_v2",
)
LEFT = "0123abcd-0000-4000-8000-"
"""How the UUIDs of leftovers begin."""


def iceberg_tables(at: Path, names: tuple[str, ...] = NAMES) -> dict[str, Table]:
    """The golden tables of these names, moved to a folder; the environment names their catalog from now on."""
    warehouse = Warehouse("damaged", at / "lake")
    warehouse.folder.mkdir(parents=True)
    for name in names:
        shutil.copytree(GOLDEN / name / "table", warehouse.folder / "db" / name)
    Move(warehouse.folder, WRITTEN_IN, warehouse.folder).run()
    configure(warehouse)
    with pyiceberg_catalog(warehouse) as catalog:
        catalog.create_namespace_if_not_exists("db")
        for name in names:
            current = current_metadata(warehouse.folder / "db" / name)
            catalog.register_table(f"db.{name}", f"file:{current}")
    return {name: warehouse.table(f"db.{name}") for name in names}


def leave(table: Table) -> frozenset[str]:
    """Leftovers of a killed commit."""
    data = next(path.parent for path in sorted((folder(table) / "data").rglob("*.parquet")))
    within = data.relative_to(folder(table))
    return planted(
        table,
        f"{within}/00000-0-{LEFT}000000000001-00001.parquet",
        f"metadata/{LEFT}000000000002-m0.avro",
        f"metadata/snap-77-1-{LEFT}000000000003.avro",
    )


def iceberg_worlds(at: Path, names: tuple[str, ...] = NAMES) -> list[World]:
    found = []
    tables = iceberg_tables(at, names)
    metadata = {name: _metadata(table) for name, table in tables.items()}
    for name, table in tables.items():
        leave(table)
        aged(folder(table))
        foreign = tuple(path for other, paths in metadata.items() if other != name for path in paths)
        opens = _opener(table)
        found.append(World(name, opens, metadata[name], foreign, now_ms(), 7 * DAY_MS))
    return found


def _opener(table: Table) -> Callable[[], OpenFiles]:
    return lambda: opened(table).retention


def _metadata(table: Table) -> tuple[Path, ...]:
    found = (folder(table) / "metadata").iterdir()
    return tuple(sorted(path for path in found if path.suffix in (".json", ".avro") and LEFT not in path.name))
