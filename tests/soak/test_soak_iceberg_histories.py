"""As tests/iceberg/test_iceberg_histories.py, with other and longer histories, one for ten of NIGHTKEEP_HISTORIES."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.iceberg_java import IcebergJava
from tests.engines.iceberg_tables import Warehouse
from tests.iceberg import iceberg_caring
from tests.iceberg.iceberg_histories import check_history
from tests.iceberg.iceberg_nights import Nights

FIRST, STEPS = 1000, 25
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0")) // 10


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with iceberg_caring.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_rows_are_what_was_done_to_them_at_length(seed: int, lake: Nights, tmp_path: Path) -> None:
    check_history(lake, seed, steps=STEPS)
    shutil.rmtree(tmp_path)
