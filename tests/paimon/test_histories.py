"""Random lives of tables: whatever Java would have made of a bucket, Nightkeep makes of it too.

NIGHTKEEP_SEEDS=first:last (last excluded) chooses other histories than the first fifty.
"""

import os
from pathlib import Path

import pytest
from tests.engines.paimon_java import PaimonJava
from tests.engines.random_history import random_history
from tests.paimon.two_engines import live_twice

from nightkeep.formats.paimon import columns, write

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_SEEDS", "0:50").split(":"))


@pytest.mark.parametrize("seed", range(FIRST, LAST))
def test_an_upgrade_does_what_java_does(
    seed: int, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        # Small tables reach what happens between row groups and between batches.
        monkeypatch.setattr(write, "ROW_GROUP_ROWS", 100)
        monkeypatch.setattr(columns, "BATCH_ROWS", 37)
    try:
        live_twice(paimon_java, random_history(seed), tmp_path)
    except Exception as failure:
        failure.add_note(f"again: NIGHTKEEP_SEEDS={seed}:{seed + 1} python -m pytest {Path(__file__).name}")
        raise
