"""What readers skip before and after, from statistics; the columns that lose are named."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake, request

from nightkeep.formats.delta.rewrite.optimize import LAYOUT
from nightkeep.model import Clustering, Curve

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64()), ("ts", pa.timestamp("us", "UTC")), ("flag", pa.bool_())])


def lake(folder: Path) -> Lake:
    """Appended in the order of time, without any order of the rest."""
    rng, found = np.random.default_rng(0), Lake(folder / "t", SCHEMA)
    times = pa.array(1_790_000_000_000_000 + np.arange(20_000) * 1_000_000, pa.timestamp("us", "UTC"))
    a, b = rng.integers(0, 1 << 30, 20_000), rng.normal(0, 1, 20_000)
    found.append(pa.table({"a": a, "b": b, "ts": times, "flag": a % 2 == 0}), files=20)
    return found


def test_clustered_columns_gain_and_the_time_order_that_is_lost_is_named(tmp_path: Path) -> None:
    found = lake(tmp_path)
    before = found.snapshot
    size = sum(file.bytes for file in found.files) // 20
    found.run(request(clustering=Clustering(("a", "b"), Curve.Z), target_bytes=size))
    told = LAYOUT.layout_metrics(before, found.snapshot, [unit.key for unit in before.units])
    assert set(told) == {"skipping", "overlap", "losing"}
    skipping, overlap = told["skipping"], told["overlap"]
    assert isinstance(skipping, dict) and isinstance(overlap, dict)
    assert list(skipping) == list(overlap) == ["a", "b", "ts"]
    assert skipping["ts"]["before"] > 0.9 and skipping["ts"]["after"] < 0.1
    for column in "ab":
        assert skipping[column]["before"] < 0.1 and skipping[column]["after"] > 0.5
        assert overlap[column]["after"] < overlap[column]["before"] / 2
    assert overlap["ts"]["before"] == pytest.approx(1, abs=0.1)
    assert told["losing"] == ["ts"]


def test_partitions_that_were_not_touched_do_not_count(tmp_path: Path) -> None:
    found = lake(tmp_path)
    told = LAYOUT.layout_metrics(found.snapshot, found.snapshot, [])
    assert told["losing"] == []
    assert told["skipping"] == {name: {"before": 0.0, "after": 0.0} for name in ("a", "b", "ts")}
