"""Random lives of tables that are swept: Java reads every snapshot as it did before.

NIGHTKEEP_ICEBERG_LIVES=first:last (last excluded) chooses other lives than the first seventeen.
"""

import os

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg.lives import IcebergLife
from tests.formats.iceberg.runs import configured
from tests.retention.lives import live
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_ICEBERG_LIVES", "0:17").split(":"))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=5))
def test_what_was_read_once_is_read_again(seed: int, iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    with configured(iceberg):
        live(IcebergLife(seed, iceberg.table(), iceberg_java), seed, steps=10)
