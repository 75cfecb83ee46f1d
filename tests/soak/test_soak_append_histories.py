"""As tests/engines/paimon/test_append_histories.py, with other seeds, as many as NIGHTKEEP_HISTORIES says."""

import os
import shutil
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.append_life import check_life

FIRST = 40
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0"))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_life_at_length(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_life(paimon_java, seed, tmp_path / "table")
    shutil.rmtree(tmp_path)
