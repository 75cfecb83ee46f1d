"""As the test_*_damage.py of each format, NIGHTKEEP_DAMAGES times for each."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.formats.delta.damaged import delta_worlds
from tests.formats.iceberg.damaged import iceberg_worlds
from tests.formats.paimon.damaged import paimon_worlds
from tests.retention.damage import World, fuzz

COUNT = int(os.environ.get("NIGHTKEEP_DAMAGES", "0"))


@pytest.mark.soak
@pytest.mark.parametrize("worlds", [paimon_worlds, delta_worlds, iceberg_worlds], ids=["paimon", "delta", "iceberg"])
def test_no_damage_makes_a_live_file_an_orphan(worlds: Callable[[Path], Sequence[World]], tmp_path: Path) -> None:
    found = fuzz(worlds(tmp_path), count=COUNT, seed=1)
    print(f"{COUNT:,} damaged tables: {found}")
    assert not found.failures and not found.surprises, str(found)
