"""Random lives of tables in which every writer has another format: Java reads the rows that a table should have.

NIGHTKEEP_ICEBERG_FORMAT_SEEDS=first:last (last excluded) chooses other histories than the first fifty.
"""

import os
from collections.abc import Iterator

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.histories import check_history
from tests.formats.iceberg.nights import Nights
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_ICEBERG_FORMAT_SEEDS", "0:50").split(":"))


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with runs.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=1))
def test_rows_are_what_was_done_to_them(seed: int, lake: Nights) -> None:
    check_history(lake, seed, formats=("orc", "avro", "parquet"))
