"""The health that a run finds is in its document, by the names and figures of `status`."""

from __future__ import annotations

from pathlib import Path

import pytest

import nightkeep
from nightkeep.records import RunDocument

SAMPLES = Path(__file__).parents[2] / "samples"
TABLES = {
    "delta": SAMPLES / "delta" / "shop.db" / "clicks",
    "paimon with level 0": SAMPLES / "paimon" / "shop.db" / "orders",
    "paimon without work": SAMPLES / "paimon" / "shop.db" / "untouched",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_a_plan_states_what_status_states(tmp_path: Path, kind: str) -> None:
    table = f"{kind.partition(' ')[0]}:{TABLES[kind]}"
    (status,) = nightkeep.status(table, reports=tmp_path)
    (planned, *_) = nightkeep.plan(table, reports=tmp_path)
    known = {name: value for name, value in status.metrics.items() if value is not None and not name.startswith("days")}
    # What only documents know is no fact of one version, and ages go on.
    past = ("nights_waited", "orphans", "level0_age_ms")
    ages = {"level0_age_ms"}
    assert {name: value for name, value in planned.metrics.health.items() if name not in ages} == {
        name: value for name, value in known.items() if name not in past
    }
    assert planned.metrics.health.keys() & ages == known.keys() & ages
    assert planned.metrics.score == (None if kind == "paimon without work" else status.score)
    assert RunDocument.from_json(planned.to_json()).metrics == planned.metrics
