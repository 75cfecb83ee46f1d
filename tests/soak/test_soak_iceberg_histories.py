"""As tests/engines/iceberg/test_histories.py, with other and longer histories, one for ten of NIGHTKEEP_HISTORIES."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.histories import check_history
from tests.formats.iceberg.nights import Nights

FIRST, STEPS = 1000, 25
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0")) // 10


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with runs.configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_rows_are_what_was_done_to_them_at_length(seed: int, lake: Nights, tmp_path: Path) -> None:
    check_history(lake, seed, steps=STEPS)
    shutil.rmtree(tmp_path)
