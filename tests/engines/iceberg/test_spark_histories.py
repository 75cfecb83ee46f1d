"""Random lives of Spark's tables with an own order, with changed partition specs, with branches, and with variants.

NIGHTKEEP_ICEBERG_SEEDS=first:last (last excluded) chooses other histories than the first fifty of each kind.
"""

import os
from collections.abc import Iterator

import pytest
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.spark_histories import KINDS, SparkHistory, check_history
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_ICEBERG_SEEDS", "0:50").split(":"))
STEPS = 7


@pytest.fixture
def warehouse(iceberg: Warehouse) -> Iterator[Warehouse]:
    with runs.configured(iceberg):
        yield iceberg


@pytest.mark.slow
@pytest.mark.in_turn("kind")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=1))
def test_rows_are_what_was_done_to_them(
    kind: str, seed: int, iceberg_spark: IcebergSpark, warehouse: Warehouse
) -> None:
    check_history(SparkHistory(iceberg_spark, warehouse.table(), kind, seed), steps=STEPS)
