"""Candidates of a clustered table that break the rules of its feature: the gate names the rule."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.delta.clustered_lake import clustered, provided, rows_of
from tests.formats.delta.clustered_sabotage import CLUSTERED, filled, rewritten
from tests.formats.delta.gate.test_sabotage import assert_caught, every_level
from tests.formats.delta.gate.test_sabotage import judged as by_the_gate
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.laid_anew import a_run
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.sabotage import Act, Staged

from nightkeep.formats.delta.rewrite.optimize import LAYOUT
from nightkeep.model import Candidate, Clustering, Curve, Mismatch, Plan, PlannedUnit, Rewrite, Verified, VerifyLevel
from nightkeep.stages.execute import execute
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

OF_OTHERS = "clustered it, expected it to be left to that"


def table(folder: Path) -> Lake:
    """Columns beyond those that have statistics by default are among the clustering columns."""
    lake = clustered(folder / "t", [["id"], ["text"]], dataSkippingNumIndexedCols="1")
    lake.append(rows_of(range(400)), files=4)
    provided(lake, rows_of(range(400, 500)), "liquid", files=2)
    return lake


def judged(lake: Lake, plan: Plan, damage: Callable[[Path], None] = lambda path: None) -> Verified | Mismatch:
    opened, run = lake.table, a_run()
    rewrites: list[Rewrite] = execute(opened, plan, run, mapper=inline)
    candidate: Candidate = opened.commits.stage(opened.snapshot(), rewrites, run)
    damage(lake.folder / candidate.metadata)
    found = verify(opened, plan, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(found, Verified | Mismatch)
    return found


def of_all_files(lake: Lake) -> Plan:
    """A plan by a rule that ignores providers. Its rows are right."""
    snapshot = lake.snapshot
    asked = request(clustering=Clustering(("id", "text"), Curve.HILBERT), target_bytes=4_000)
    work = LAYOUT.cluster_files(snapshot, snapshot.units[0], asked)
    assert work is not None and len(work.input_files) == 6
    unit = PlannedUnit(
        snapshot.units[0].key, work.reason, work.input_files, work.input_bytes, work.estimate, work.tasks
    )
    return Plan(snapshot.table, asked.operation, snapshot.identity, (unit,))


def test_what_the_rule_writes_is_verified(tmp_path: Path) -> None:
    lake = table(tmp_path)
    assert isinstance(judged(lake, lake.plan(request(target_bytes=4_000))), Verified)


def test_files_of_another_provider_are_not_rewritten(tmp_path: Path) -> None:
    lake = table(tmp_path)
    found = judged(lake, of_all_files(lake))
    assert isinstance(found, Mismatch) and "removed, though liquid " + OF_OTHERS in str(found)


@every_level
def test_columns_of_every_type_are_verified(tmp_path: Path, level: VerifyLevel) -> None:
    made = filled(tmp_path / "t")
    assert isinstance(by_the_gate(made, rewritten(made), level), Verified)


@every_level
@pytest.mark.parametrize("act", CLUSTERED, ids=lambda act: act.__name__)
def test_the_gate_catches_of_clustering(act: Act, level: VerifyLevel, tmp_path: Path) -> None:
    made = filled(tmp_path / "t")
    candidate = rewritten(made)
    act(Staged(made, candidate))
    assert_caught(by_the_gate(made, candidate, level), CLUSTERED[act])


HIGHEST = chr(0x10FFFF)


@pytest.mark.parametrize(
    "values",
    [
        ["a" * 40, HIGHEST * 70],
        [math.nan, 1.5],
        [-math.inf, math.inf],
        [datetime(2026, 1, 1, tzinfo=UTC), None],
        [None, None],
    ],
    ids=repr,
)
def test_bounds_that_no_writer_can_state_are_not_asked_for(tmp_path: Path, values: list[Any]) -> None:
    known = pa.array(values)
    kind = pa.timestamp("us", "UTC") if pa.types.is_timestamp(known.type) else known.type
    schema = pa.schema([("id", pa.int64()), ("c", pa.float64() if pa.types.is_null(kind) else kind)])
    lake = clustered(tmp_path / "t", [["c"]], schema)
    for _ in range(2):
        lake.append(pa.table({"id": range(len(values)), "c": values}, schema))
    made = HandMade.at(lake.folder)
    assert isinstance(by_the_gate(made, rewritten(made), VerifyLevel.FULL), Verified)


def test_texts_of_which_bounds_keep_nothing_have_no_maximum(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("c", pa.string())])
    lake = clustered(tmp_path / "t", [["c"]], schema, dataSkippingStringPrefixLength="0")
    for _ in range(2):
        lake.append(pa.table({"id": range(3), "c": ["a", "b", None]}, schema))
    made = HandMade.at(lake.folder)
    assert isinstance(by_the_gate(made, rewritten(made), VerifyLevel.FULL), Verified)


def test_a_file_that_stays_keeps_its_provider(tmp_path: Path) -> None:
    """Also where only its vector changes."""
    lake = table(tmp_path)
    path = next(file.path for file in lake.files if file.raw.get("clusteringProvider"))

    def renamed(commit: Path) -> None:
        add = {**next(file.raw for file in lake.files if file.path == path), "dataChange": False}
        add["clusteringProvider"] = "nightkeep"
        commit.write_text(f"{commit.read_text()}{json.dumps({'add': add})}\n")

    found = judged(lake, lake.plan(request(target_bytes=4_000)), renamed)
    assert isinstance(found, Mismatch) and "clusteringProvider changed, though its bytes did not" in str(found)
