"""Tables moved to other folders are read there, by Java: what the samples are placed by."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from samples.iceberg_places import CATALOG, NOWHERE, Move, current_metadata, place
from samples.make_iceberg_samples import ICEBERG_SAMPLES
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

SAMPLES = Path(__file__).parents[3] / "samples" / "iceberg"
MOVED = (
    "upserts_v2",
    "upserts_of_two_keys_v2",
    "upserts_v3",
    "positions",
    "vectors",
    "vectors_named_parquet",
    "upgraded",
    "refs_v3",
    "statistics_v2",
    "history_v2",
    "specs_deleted_v3",
    "lineage",
    "transforms_v2",
)


def every_size_is_right(java: IcebergJava, table: Table) -> None:
    sizes = {entry["file_path"]: entry["file_size_in_bytes"] for entry in java.entries(table) if entry["status"] != 2}
    sizes |= {manifest["manifest_path"]: manifest["manifest_length"] for manifest in java.manifests(table)}
    assert {path: Path(path.removeprefix("file:")).stat().st_size for path in sizes} == sizes


@pytest.mark.few(2)
@pytest.mark.parametrize("name", some_extended(MOVED, keep=4))
def test_a_moved_table_is_the_same_elsewhere(
    name: str, made: Callable[[str], Table], iceberg_java: IcebergJava, iceberg: Warehouse
) -> None:
    old, new = made(name), iceberg.table("db.moved")
    folder = iceberg.folder / "a b"
    shutil.copytree(old.warehouse.folder / "db" / name, folder / "db" / name)
    Move(folder, old.warehouse.folder, folder).run()
    iceberg_java.register(new, current_metadata(folder / "db" / name))
    assert iceberg_java.read(new) == iceberg_java.read(old)
    every_size_is_right(iceberg_java, new)
    named = json.dumps([iceberg_java.metadata(new), iceberg_java.entries(new), iceberg_java.manifests(new)])
    assert str(folder) in named and str(old.warehouse.folder) not in named


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("placed") / "it's here"
    assert place(SAMPLES, folder) == folder / "catalog.db"
    return Warehouse(CATALOG, folder)


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "rows"), (("orders", 11_815), ("customers", 7_955)))
def test_samples_are_read_where_they_are_placed(
    name: str, rows: int, placed: Warehouse, iceberg_java: IcebergJava, lakes: Lakes
) -> None:
    table = placed.table(f"shop.{name}")
    found = iceberg_java.read(table)
    assert len(found.rows) == rows
    assert lakes.duckdb_read_iceberg(table.metadata) == found
    every_size_is_right(iceberg_java, table)
    assert f"{NOWHERE}/" not in json.dumps(iceberg_java.metadata(table))


def test_the_catalog_of_the_samples_is_pyicebergs(placed: Warehouse) -> None:
    with pyiceberg_catalog(placed) as catalog:
        assert sorted(catalog.list_tables("shop")) == sorted(("shop", make.__name__) for make in ICEBERG_SAMPLES)
        assert catalog.load_table("shop.customers").metadata.format_version == 3
