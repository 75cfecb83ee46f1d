"""Tables by recipe, as fixtures."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from samples.iceberg_places import Move, current_metadata
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.golden_tables import GOLDEN, RECIPES, WRITTEN_IN

Made = Callable[[str], Table]


@pytest.fixture(scope="session")
def made(iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Made:
    """A table of RECIPES by name, for all tests of the session to read: nothing may write it."""
    warehouse = Warehouse("made", tmp_path_factory.mktemp("made") / "warehouse")
    known: dict[str, Table] = {}

    def table(name: str) -> Table:
        if name not in known:
            found = warehouse.table(f"db.{name}")
            RECIPES[name](found, iceberg_java, lambda: request.getfixturevalue("iceberg_spark"))
            known[name] = found
        return known[name]

    return table


@pytest.fixture
def make(iceberg: Warehouse, iceberg_java: IcebergJava, request: pytest.FixtureRequest) -> Made:
    """A table of RECIPES by name, made anew for this test alone."""

    def table(name: str) -> Table:
        found = iceberg.table(f"db.{name}")
        RECIPES[name](found, iceberg_java, lambda: request.getfixturevalue("iceberg_spark"))
        return found

    return table


@pytest.fixture
def golden(iceberg: Warehouse) -> Made:
    """A table of GOLDEN by name, moved into this test's catalog: no engine is begun for it."""

    def table(name: str) -> Table:
        folder: Path = iceberg.folder / "db" / name
        shutil.copytree(GOLDEN / name / "table", folder)
        Move(iceberg.folder, WRITTEN_IN, iceberg.folder).run()
        found = iceberg.table(f"db.{name}")
        with pyiceberg_catalog(iceberg) as catalog:
            catalog.create_namespace_if_not_exists("db")
            catalog.register_table(found.name, f"file:{current_metadata(folder)}")
        return found

    return table
