"""A unit beyond one task: the same rows and about the same skipping through an exchange as in one task."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.formats.delta.lake import ROW_TRACKING, Lake, request
from tests.support.examples import examples

from nightkeep.clustering import sorting, wide_task
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.rewrite.optimize import CLUSTERED, file_bounds
from nightkeep.kernels.skipping import queries_of, skipped_share
from nightkeep.model import Clustering, Curve, Request
from nightkeep.protocol import Wide
from nightkeep.spark.exchange import SparkExchange
from nightkeep.spark.session import SparkMapper
from nightkeep.stages import execute
from nightkeep.tasks import inline_exchange

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("day", pa.string())])


def rows_of(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 40, count)
    ts = pa.array(1_790_000_000_000_000 + rng.integers(0, 10**12, count), pa.timestamp("us", "UTC"))
    return pa.table({"a": pa.array(a, mask=a % 11 == 0), "s": [f"{n % 997:03} {'x' * (n % 40)}" for n in a], "ts": ts})


def lake(folder: Path, rows: int, files: int = 6) -> Lake:
    found = Lake(folder / "t", SCHEMA, ["day"], ROW_TRACKING)
    found.append(rows_of(rows), files=files, partition={"day": "x"})
    first = found.files[0]
    found.mark({first.path: range(0, first.rows or 0, 3)})
    return found


def asked(found: Lake, files: int, **more: Any) -> Request:
    size = sum(file.bytes for file in found.files) // files
    clustering = Clustering(("a", "ts"), Curve.HILBERT)
    return request(clustering=clustering, **{"target_bytes": size, "wide_bytes": 0, **more})


def skipping(found: Lake) -> list[float]:
    bounds = file_bounds(found.snapshot, found.files, [("a",), ("ts",)])
    return [skipped_share(each, queries_of(each)) for each in bounds.values()]


def test_the_plan_states_which_path_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 1)
    found = lake(tmp_path, 1_000)
    live = 1_000 - 56
    (unit,) = found.plan(asked(found, 4)).units
    (task,) = unit.tasks
    assert isinstance(task, Wide) and task.parts == 4
    assert "through Spark's exchange, as" in unit.reason and "live bytes are more than 0" in unit.reason
    (unit,) = found.plan(asked(found, 4, wide_bytes=1 << 30)).units
    assert not isinstance(unit.tasks[0], Wide) and "in one task, as" in unit.reason
    (unit,) = found.plan(asked(found, 4, wide_bytes=None, task_bytes=100)).units
    assert isinstance(unit.tasks[0], Wide) and "are more than 400" in unit.reason
    assert len(found.rows()) == live


def test_through_spark_as_in_one_task(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 1 << 16)
    results = []
    for more in ({}, {"wide_bytes": 1 << 40}):
        found = lake(tmp_path / str(len(results)), 12_000)
        before = found.rows()
        found.run(asked(found, 16, **more), mapper=SparkMapper(spark), exchange=SparkExchange(spark))
        assert found.rows() == before
        assert len({file.tags[CLUSTERED] for file in found.files}) == 1
        size = sum(file.bytes for file in found.files) / len(found.files)
        assert 14 <= len(found.files) <= 20 and all(0.5 * size < file.bytes < 1.5 * size for file in found.files)
        assert not found.plan(asked(found, 16)).units
        results.append(skipping(found))
    assert np.allclose(results[0], results[1], atol=0.05)
    assert min(results[0]) > 0.4


@settings(max_examples=examples(10), deadline=None)
@given(
    st.integers(1, 2_000), st.integers(1, 5), st.integers(1, 12), st.integers(1 << 12, 1 << 18), st.integers(1, 1 << 16)
)
def test_any_sizes_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: int, files: int, parts: int, least: int, source: int
) -> None:
    found = lake(tmp_path_factory.mktemp("lake"), rows, files)
    before = found.rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "LEAST_BYTES", least)
        patch.setattr(wide_task, "SOURCE_BYTES", source)
        patch.setattr(wide_task, "PIECE_BYTES", source // 4)
        found.run(asked(found, parts, task_bytes=1))
    assert found.rows() == before
    assert not [file for file in found.files if file.vector]


def test_rows_within_a_part_are_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Part by part, bucket by bucket, a sort by one column is one of the whole."""
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 14)
    found = lake(tmp_path, 4_000)
    one = Clustering(("a",), Curve.Z)
    size = sum(file.bytes for file in found.files) // 5
    found.run(request(clustering=one, target_bytes=size, wide_bytes=0, task_bytes=1))
    values = [found.read(file).column("a").to_pylist() for file in found.files]
    values.sort(key=lambda column: max((v for v in column if v is not None), default=-1))
    every = [-1 if value is None else value for column in values for value in column]
    assert every == sorted(every)


def test_small_parts_are_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = lake(tmp_path, 6_000)
    size = sum(file.bytes for file in found.files) // 10
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 4 * size)
    (unit,) = found.plan(asked(found, 10)).units
    (task,) = unit.tasks
    assert isinstance(task, Wide) and task.parts == 3
    before = found.rows()
    found.run(asked(found, 10))
    assert found.rows() == before and 8 <= len(found.files) <= 11
    assert min(skipping(found)) > 0.3


@pytest.mark.parametrize("parts", [1, 7, 64])
def test_units_go_together_or_apart(tmp_path: Path, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_task, "SOURCE_BYTES", 1)
    monkeypatch.setattr(execute, "ROUND_PARTS", parts)
    found = Lake(tmp_path / "t", SCHEMA, ["day"])
    for number, day in enumerate("xyz"):
        found.append(rows_of(1_000, number), files=3, partition={"day": day})
    before, size = found.rows(), found.files[0].bytes
    calls = []

    def exchange(*scattered: Any, **settings: Any) -> list[Any]:
        calls.append(settings["parts"])
        return inline_exchange(*scattered, **settings)

    found.run(asked(found, 9, target_bytes=size), exchange=exchange)
    assert found.rows() == before and len(found.snapshot.units) == 3
    assert calls == {1: [3, 3, 3], 7: [6, 3], 64: [9]}[parts]
    assert all(len(unit.files) == 3 for unit in found.snapshot.units)


def test_a_source_that_cannot_be_read_ends_the_run(tmp_path: Path) -> None:
    found = lake(tmp_path, 1_000)
    path = found.folder / found.files[-1].name
    path.write_bytes(b"PAR1" + path.read_bytes()[:-20])
    with pytest.raises(CorruptMetadata, match="expected a Parquet file"):
        found.run(asked(found, 4))
