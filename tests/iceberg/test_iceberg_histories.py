"""Random lives of tables: whatever was done to one, and whenever we cared for it, Java reads the rows it should have.

NIGHTKEEP_ICEBERG_SEEDS=first:last (last excluded) chooses other histories than the first eight.
"""

import os
from collections.abc import Iterator

import pytest
from tests.engines.iceberg_java import IcebergJava
from tests.engines.iceberg_tables import Warehouse
from tests.iceberg import iceberg_caring
from tests.iceberg.iceberg_histories import check_history
from tests.iceberg.iceberg_nights import Nights

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_ICEBERG_SEEDS", "0:8").split(":"))


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with iceberg_caring.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_rows_are_what_was_done_to_them(seed: int, lake: Nights) -> None:
    check_history(lake, seed)
