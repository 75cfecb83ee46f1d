"""Random lives of tables that are swept: Java reads every snapshot, tag and branch as it did before.

NIGHTKEEP_LIVES=first:last (last excluded) chooses other lives than the first seventeen.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.lives import PaimonLife
from tests.retention.lives import live
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_LIVES", "0:17").split(":"))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=5))
def test_what_was_read_once_is_read_again(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    live(PaimonLife(seed, tmp_path / "table", paimon_java), seed, steps=10)
