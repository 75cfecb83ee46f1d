"""Tables by recipe, as fixtures."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from tests.engines.iceberg_java import IcebergJava
from tests.engines.iceberg_spark import IcebergSpark
from tests.engines.iceberg_tables import Table, Warehouse
from tests.iceberg.golden_tables import RECIPES

settings.register_profile("iceberg", deadline=None)
settings.load_profile("iceberg")

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
def spark_of_iceberg(request: pytest.FixtureRequest) -> Callable[[], IcebergSpark]:
    """iceberg-spark, begun when it is first called for."""
    return lambda: request.getfixturevalue("iceberg_spark")
