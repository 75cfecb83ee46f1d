"""Random honest histories of Delta tables: an audit raises no alarm, in steps or at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.auditing.delta_lake import DAY, OTHER, Lake, commits
from tests.formats.delta.hand_made import HandMade

import nightkeep
from nightkeep.model import Outcome


@pytest.mark.parametrize("seed", range(6))
def test_honest_histories_raise_no_alarm(tmp_path: Path, seed: int) -> None:
    """Appends, deletes, compactions of some files, and rewrites of vectors, audited in steps and at once."""
    chance = random.Random(seed)
    lake = Lake(HandMade(tmp_path / "t"), tmp_path / "reports")
    lake.made.append(DAY, range(10))
    keeping = set[int]()
    for step in range(40):
        day = chance.choice((DAY, OTHER))
        match chance.randrange(5):
            case 0 | 1:
                lake.made.append(day, range(1000 * step, 1000 * step + chance.randrange(1, 9)))
            case 2:
                ids: list[Any] = [row for add in lake.live(day) for row in lake.rows(add).column("id").to_pylist()]
                if ids:
                    lake.made.delete(day, chance.sample(ids, min(3, len(ids))))
            case _:
                held = lake.live(day)
                chosen = chance.sample(held, chance.randint(1, len(held))) if held else []
                if chosen:
                    rows = pa.concat_tables([lake.rows(add) for add in chosen])
                    keeping.add(lake.replace(chosen, lake.made.written(day, rows)))
        if chance.random() < 0.2:
            document = lake.audit()
            assert document.outcome is not Outcome.MISMATCH, document.reason
    whole = nightkeep.audit(f"delta:{lake.made.folder}", since=0, reports=tmp_path / "whole")
    assert whole.outcome is Outcome.VERIFIED, whole.reason
    assert {version for version, each in commits(whole).items() if each["verdict"] == "proven"} == keeping
