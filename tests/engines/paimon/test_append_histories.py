"""Random lives of tables without keys: Java appends, deletes, compacts, alters and expires on top of our work.

NIGHTKEEP_SEEDS=first:last (last excluded) chooses other histories than the first forty.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.append_life import check_life
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_SEEDS", "0:40").split(":"))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=5))
def test_a_life(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_life(paimon_java, seed, tmp_path / "table")
