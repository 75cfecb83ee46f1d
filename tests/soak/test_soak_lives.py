"""As the test_*_lives.py of each format, with other and longer lives; a third of NIGHTKEEP_HISTORIES for each."""

import os
import shutil
from pathlib import Path

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.formats.delta.lives import DeltaLife
from tests.formats.iceberg.lives import IcebergLife
from tests.formats.iceberg.runs import configured
from tests.formats.paimon.lives import PaimonLife
from tests.retention.lives import live

FIRST, STEPS = 1000, 16
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0"))
SEEDS = tuple(range(FIRST, FIRST + COUNT))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS[0::3])
def test_paimon_at_length(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    live(PaimonLife(seed, tmp_path / "table", paimon_java), seed, steps=STEPS)
    shutil.rmtree(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS[1::3])
def test_delta_at_length(seed: int, lakes: Lakes, tmp_path: Path) -> None:
    life = DeltaLife(seed, tmp_path / "table", lakes)
    live(life, seed, steps=STEPS)
    assert len(lakes.duckdb_read(life.folder).rows) == len(life.made.rows())
    shutil.rmtree(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS[2::3])
def test_iceberg_at_length(seed: int, iceberg_java: IcebergJava, iceberg: Warehouse, tmp_path: Path) -> None:
    with configured(iceberg):
        live(IcebergLife(seed, iceberg.table(), iceberg_java), seed, steps=STEPS)
    shutil.rmtree(tmp_path)
