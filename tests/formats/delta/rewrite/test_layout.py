"""Real Delta tables -> where their rows lie -> advice that comes true once it is followed."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.runs import opened

from nightkeep.clustering.advise import advise
from nightkeep.commands.app import main
from nightkeep.errors import RefusedTable
from nightkeep.model import Clustering, Curve
from nightkeep.sql_text.queries import read_queries

SAMPLES = Path(__file__).parents[4] / "samples" / "delta" / "shop.db"
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("c", pa.string()), ("day", pa.string())])
FILES_A_DAY = 16


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found, random = Lake(tmp_path / "t", SCHEMA, ["day"]), np.random.default_rng(3)
    for day in ("2026-11-01", "2026-11-02"):
        rows = 16_000
        columns = {
            "a": random.integers(0, 1 << 40, rows),
            "b": random.integers(0, 10_000, rows).astype(np.int32),
            "c": [f"shop/item/{n:06d}" for n in random.integers(0, 500_000, rows)],
            "day": [day] * rows,
        }
        found.append(pa.table(columns, schema=SCHEMA), files=FILES_A_DAY, partition={"day": day})
    return found


def told(lake: Lake, text: str, target_bytes: int) -> Any:
    return advise(
        "readings", lake.table.layout, lake.snapshot, read_queries(text, subject="queries"), target_bytes=target_bytes
    )


def file_bytes(lake: Lake) -> int:
    return sum(file.bytes for file in lake.files) // len(lake.files)


def test_advice_comes_true(lake: Lake) -> None:
    queries, target = "b between 100 and 150\nc like 'shop/item/0003%'", file_bytes(lake)
    found = told(lake, queries, target)
    assert found.clustering is not None and set(found.clustering.columns) == {"b", "c"}
    assert found.read_share_before > 0.7

    lake.run(request(clustering=found.clustering, target_bytes=target))
    after = told(lake, queries, target)

    assert after.read_share_before == pytest.approx(found.read_share_after, abs=0.1)
    assert after.read_share_before < 0.6
    assert after.clustering is None


def without_statistics(folder: Path) -> None:
    for path in (folder / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_a_table_without_statistics_is_sampled_and_gains_most(lake: Lake) -> None:
    queries, target = "b between 100 and 150\nc like 'shop/item/0003%'", file_bytes(lake)
    expected = told(lake, queries, target)
    without_statistics(lake.folder)

    found = told(lake, queries, target)

    assert (found.clustering, found.read_share_after) == (expected.clustering, expected.read_share_after)
    assert found.read_share_before == 1.0 and "no file has statistics" in found.reason
    lake.run(request(clustering=found.clustering, target_bytes=target))
    after = told(lake, queries, target)
    assert after.read_share_before == pytest.approx(found.read_share_after, abs=0.1)


def test_a_table_whose_files_shall_have_no_statistics_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", SCHEMA, ["day"], {"delta.dataSkippingNumIndexedCols": "0"})
    rows = pa.table({"a": [1], "b": pa.array([1], pa.int32()), "c": ["x"], "day": ["d"]}, schema=SCHEMA)
    lake.append(rows, partition={"day": "d"})
    with pytest.raises(RefusedTable, match="no file has statistics, and new ones would have none"):
        told(lake, "a = 1", 1 << 20)


def test_bounds_and_samples_are_of_live_rows_by_partition(lake: Lake) -> None:
    layout = lake.table.layout.read(lake.snapshot)
    assert layout.bounds.keys() == {"a", "b", "c"}
    assert len(layout.unit) == len(layout.bytes) == 2 * FILES_A_DAY
    assert set(layout.unit.tolist()) == {0, 1}
    samples = dict(lake.table.layout.sample(lake.snapshot, ["b", "c"], 8_000))
    assert {place: rows.column_names for place, rows in samples.items()} == {0: ["b", "c"], 1: ["b", "c"]}
    assert 7_000 < sum(rows.num_rows for rows in samples.values()) < 9_000


def test_rows_that_vectors_hide_are_not_sampled(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "clicks", tmp_path / "clicks")
    table = opened(tmp_path / "clicks")
    snapshot = table.snapshot()
    live = [sum((file.rows or 0) - file.deleted_rows for file in unit.files) for unit in snapshot.units]
    found = {place: rows.num_rows for place, rows in table.layout.sample(snapshot, ["click_id"], 1 << 40)}
    assert found == dict(enumerate(live))


def test_the_command_advises_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(SAMPLES / "readings", tmp_path / "readings")
    (tmp_path / "queries.sql").write_text("device_id = 17\nplace.room = 'attic' -- nested\n")
    arguments = ["--queries", str(tmp_path / "queries.sql"), "--target-size", "16KB", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["advise", f"delta:{tmp_path / 'readings'}", *arguments])
    found = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert found["clustering"]["curve"] == Curve.HILBERT and "device_id" in found["clustering"]["columns"]
    assert {cost["query"] for option in found["options"] for cost in option["queries"]} == {
        "device_id = 17",
        "place.room = 'attic'",
    }


def test_a_table_that_is_not_clustered_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise", f"paimon:{SAMPLES.parents[1] / 'paimon' / 'shop.db' / 'orders'}"])
    assert ended.value.code == 3
    assert "rows of a table with a primary key are sorted by it" in capsys.readouterr().err


def test_clustering_is_a_value_that_a_run_takes(lake: Lake) -> None:
    found = told(lake, "b = 5", file_bytes(lake))
    assert found.clustering == Clustering(("b",), Curve.HILBERT)
