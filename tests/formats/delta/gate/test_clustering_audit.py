"""Candidates of a clustered table that break the rules of its feature: the gate names the rule."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta.clustered_lake import clustered, provided, rows_of
from tests.formats.delta.laid_anew import a_run
from tests.formats.delta.lake import Lake, request

from nightkeep.formats.delta.rewrite.optimize import LAYOUT
from nightkeep.model import Candidate, Clustering, Curve, Mismatch, Plan, PlannedUnit, Rewrite, Verified, VerifyLevel
from nightkeep.stages.execute import execute
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

OF_OTHERS = "clustered it, expected it to be left to that"
Adds = list[dict[str, Any]]


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


def with_adds(change: Callable[[Adds], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        change([action["add"] for action in actions if "add" in action])
        path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

    return damage


def test_what_the_rule_writes_is_verified(tmp_path: Path) -> None:
    lake = table(tmp_path)
    assert isinstance(judged(lake, lake.plan(request(target_bytes=4_000))), Verified)


def test_files_of_another_provider_are_not_rewritten(tmp_path: Path) -> None:
    lake = table(tmp_path)
    found = judged(lake, of_all_files(lake))
    assert isinstance(found, Mismatch) and "removed, though liquid " + OF_OTHERS in str(found)


def forget_the_provider(adds: Adds) -> None:
    del adds[0]["clusteringProvider"]


def claim_to_be_another_provider(adds: Adds) -> None:
    adds[0]["clusteringProvider"] = "liquid"


def leave_out(group: str) -> Callable[[Adds], None]:
    def change(adds: Adds) -> None:
        stats = json.loads(adds[0]["stats"])
        del stats[group]["id"]
        adds[0]["stats"] = json.dumps(stats)

    return change


def leave_out_a_text(adds: Adds) -> None:
    stats = json.loads(adds[0]["stats"])
    del stats["nullCount"]["text"]
    adds[0]["stats"] = json.dumps(stats)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (forget_the_provider, "clustering provider None, expected nightkeep"),
        (claim_to_be_another_provider, "clustering provider liquid, expected nightkeep"),
        (leave_out("minValues"), "no minValues of the clustering column id"),
        (leave_out("maxValues"), "no maxValues of the clustering column id"),
        (leave_out("nullCount"), "no nullCount of the clustering column id"),
        (leave_out_a_text, "no nullCount of the clustering column text"),
    ],
)
def test_new_files_carry_our_name_and_statistics(tmp_path: Path, damage: Callable[[Adds], None], reason: str) -> None:
    lake = table(tmp_path)
    found = judged(lake, lake.plan(request(target_bytes=4_000)), with_adds(damage))
    assert isinstance(found, Mismatch) and reason in str(found)


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
