"""Optimizing a table with shredded variants that fails at any of its writes: the rows stay, and a retry ends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.formats.delta.breaking import breaking
from tests.formats.delta.lake import Lake
from tests.formats.delta.runs import optimize, shown
from tests.formats.delta.variant_sabotage import SCHEMA, TYPED, rows
from tests.support.faulty_store import TURNS, Fuse, fail, places
from tests.support.variant_values import Typed

from nightkeep.model import Outcome

RUN = "nightly-2026-11-27"


def template(folder: Path, last: Typed) -> Path:
    lake = Lake(folder, SCHEMA)
    for start, typed in ((0, TYPED), (30, TYPED), (60, last)):
        lake.append(rows(range(start, start + 30), typed))
    return lake.folder


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("last", [TYPED, None], ids=["kept", "put together"])
def test_every_write_fails_once(tmp_path: Path, last: Typed, turn: int) -> None:
    start, fuse = template(tmp_path / "start", last), Fuse()
    before = shown(start)
    clean = Path(shutil.copytree(start, tmp_path / "clean"))
    with breaking(fuse):
        assert optimize(clean, run_id=RUN).outcome is Outcome.VERIFIED
    assert shown(clean) == before
    points = places(len(fuse.passed), turn)
    assert len(points) > 2
    for at in points:
        table = Path(shutil.copytree(start, tmp_path / str(at)))
        with breaking(Fuse(at, fail)):
            assert optimize(table, run_id=RUN).outcome in (Outcome.FAILED, Outcome.VERIFIED)
        assert shown(table) == before
        assert optimize(table, run_id=RUN).outcome is Outcome.VERIFIED
        assert shown(table) == before
