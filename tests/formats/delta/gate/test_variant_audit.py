"""Candidates with a part of a shredded variant changed: the gate sees other rows. Plain variants are the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.formats.delta.gate.test_sabotage import assert_caught, every_level
from tests.formats.delta.gate.test_sabotage import judged as by_the_gate
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.sabotage import Act, Staged
from tests.formats.delta.variant_sabotage import SCHEMA, SHREDDED, TYPED, filled, rewritten, rows
from tests.support.table_storage import storage_of

from nightkeep.clustering import shredding
from nightkeep.formats.delta.rewrite.optimize import unit_shredding
from nightkeep.model import Verified, VerifyLevel
from nightkeep.model.variant_type import Shredding


def kept(lake: Lake) -> Shredding:
    return unit_shredding(storage_of(lake.table), lake.snapshot.units[0])


@every_level
@pytest.mark.parametrize("act", SHREDDED, ids=lambda act: act.__name__)
def test_the_gate_catches_of_variants(act: Act, level: VerifyLevel, tmp_path: Path) -> None:
    made = filled(tmp_path / "t")
    candidate = rewritten(made)
    staged = Staged(made, candidate)
    assert "typed_value" in str(pq.read_schema(staged.path))
    act(staged)
    assert_caught(by_the_gate(made, candidate, level), SHREDDED[act])


@every_level
def test_what_is_put_together_is_verified(tmp_path: Path, level: VerifyLevel) -> None:
    lake = Lake(tmp_path / "t", SCHEMA)
    for start, typed in ((0, TYPED), (30, {"a": TYPED["a"]}), (60, None)):  # type: ignore[index, call-overload]
        lake.append(rows(range(start, start + 30), typed))
    assert kept(lake) is Shredding.ASSEMBLED
    made = HandMade.at(lake.folder)
    candidate = rewritten(made)
    assert "typed_value" not in str(pq.read_schema(Staged(made, candidate).path))
    assert isinstance(by_the_gate(made, candidate, level), Verified)


def test_no_more_footers_are_compared_than_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path / "t", SCHEMA)
    lake.append(rows(range(30)), files=3)
    assert kept(lake) is Shredding.KEPT
    monkeypatch.setattr(shredding, "MOST_FOOTERS", 2)
    assert kept(lake) is Shredding.ASSEMBLED
    before = lake.rows()
    lake.run(request())
    assert (len(lake.files), lake.rows()) == (1, before)
