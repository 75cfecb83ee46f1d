"""Random lives of tables that are swept: delta-rs reads every retained version as it did before.

NIGHTKEEP_DELTA_LIVES=first:last (last excluded) chooses other lives than the first sixteen.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.lives import DeltaLife
from tests.retention.lives import live
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_DELTA_LIVES", "0:16").split(":"))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=8))
def test_what_was_read_once_is_read_again(seed: int, lakes: Lakes, tmp_path: Path) -> None:
    live(DeltaLife(seed, tmp_path / "table", lakes), seed, steps=10)
