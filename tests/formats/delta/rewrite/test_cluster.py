"""Files of a partition along a curve: the same rows by every path, files that readers skip, memory as asked."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.delta.lake import ROW_TRACKING, Lake, request
from tests.support.examples import examples

from nightkeep.clustering import sorting, spill, tuning
from nightkeep.errors import UsageError
from nightkeep.formats.delta.rewrite.optimize import CLUSTERED, file_bounds
from nightkeep.kernels.skipping import queries_of, skipped_share
from nightkeep.model import Clustering, Curve

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("s", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("deep", pa.struct([("x", pa.int32()), ("many", pa.list_(pa.int32()))])),
        ("flag", pa.bool_()),
    ]
)
BY_TWO = Clustering(("a", "b"), Curve.Z)


def rows_of(count: int, seed: int = 0) -> pa.Table:
    """Rows with nulls, NaN, both zeros and skew among them."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 1 << 40, count)
    b = np.where(rng.random(count) < 0.1, rng.choice([np.nan, 0.0, -0.0, np.inf], count), rng.normal(0, 9, count))
    some = rng.random(count) < 0.05
    x = pa.array(rng.integers(0, 1000, count), pa.int32(), mask=some)
    deep = pa.StructArray.from_arrays([x, pa.array([[n] for n in range(count)], pa.list_(pa.int32()))], ["x", "many"])
    return pa.table(
        {
            "a": pa.array(a, mask=some),
            "b": b,
            "s": [f"text {n % 97} {'x' * (n % 13)}" for n in a],
            "ts": pa.array(1_790_000_000_000_000 + rng.integers(0, 10**12, count), pa.timestamp("us", "UTC")),
            "deep": deep,
            "flag": pa.array(a % 2 == 0),
        },
        SCHEMA,
    )


def lake(folder: Path, rows: int = 8_000, files: int = 8, **properties: str) -> Lake:
    found = Lake(folder / "t", SCHEMA, properties=properties)
    found.append(rows_of(rows), files=files)
    return found


def target(found: Lake, files: int) -> int:
    return sum(file.bytes for file in found.files) // files


def skipping(found: Lake, *columns: str) -> list[float]:
    paths = [tuple(column.split(".")) for column in columns]
    bounds = file_bounds(found.snapshot, found.files, paths)
    return [skipped_share(bounds[path], queries_of(bounds[path])) for path in paths]


@pytest.mark.few(1)
@pytest.mark.parametrize("curve", Curve)
def test_rows_stay_and_every_clustering_column_skips(tmp_path: Path, curve: Curve) -> None:
    found = lake(tmp_path)
    before, (was_a, was_b) = found.rows(), skipping(found, "a", "b")
    asked = request(clustering=Clustering(("a", "b"), curve), target_bytes=target(found, 16))
    done = found.run(asked)
    assert len(done.units) == 1
    assert found.rows() == before
    now_a, now_b = skipping(found, "a", "b")
    assert was_a < 0.1 and was_b < 0.1
    assert now_a > 0.4 and now_b > 0.2
    assert all(set(file.tags) == {CLUSTERED} for file in found.files)
    assert not found.plan(asked).units


def test_files_are_near_the_target_and_sorted_inside(tmp_path: Path) -> None:
    found = lake(tmp_path, rows=30_000)
    size = target(found, 20)
    found.run(request(clustering=Clustering(("a",), Curve.Z), target_bytes=size))
    near = [0.5 * size <= file.bytes <= 1.5 * size for file in found.files]
    assert len(near) >= 15 and sum(near) >= 0.9 * len(near)
    values = [found.read(file).column("a").to_pylist() for file in found.files]
    ordered = sorted(values, key=lambda column: max((v for v in column if v is not None), default=-1))
    every = [-1 if value is None else value for column in ordered for value in column]
    assert every == sorted(every)


def test_many_tiny_files_become_files_near_the_target(tmp_path: Path) -> None:
    """Footers and pages of tiny files say nothing of how large rows are in a file of thousands."""
    found = Lake(tmp_path / "t", SCHEMA)
    found.append(rows_of(8_000), files=200)
    whole = lake(tmp_path / "other", files=1)
    size = target(whole, 10)
    found.run(request(clustering=BY_TWO, target_bytes=size))
    near = [0.5 * size <= file.bytes <= 1.5 * size for file in found.files]
    stored = sum(file.bytes for file in found.files)
    # Row groups of a few KiB take more bytes than the one of the whole file.
    assert len(near) <= 1.4 * stored / size and sum(near) >= 0.9 * len(near) and stored < 1.5 * whole.files[0].bytes


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "columns", [("b",), ("s",), ("ts", "flag"), ("deep.x", "s"), ("DEEP.X",), ("a", "b", "s", "ts")]
)
def test_columns_of_every_kind_in_memory_and_in_buckets(
    tmp_path: Path, columns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled = [column.lower() for column in columns]
    results = []
    for least in (1 << 30, 1 << 14):
        monkeypatch.setattr(sorting, "LEAST_BYTES", least)
        found = lake(tmp_path / str(least))
        before = found.rows()
        found.run(
            request(
                clustering=Clustering(columns, Curve.HILBERT),
                target_bytes=target(found, 16),
                task_bytes=1,
                wide_bytes=1 << 40,
            )
        )
        assert found.rows() == before
        results.append(skipping(found, *spelled))
    assert np.allclose(results[0], results[1], atol=0.08)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("columns", "curve", "expected"),
    [(1, Curve.Z, 0.98), (2, Curve.Z, 0.824), (2, Curve.HILBERT, 0.868), (4, Curve.Z, 0.546), (4, Curve.HILBERT, 0.61)],
)
def test_a_hundred_files_skip_what_is_published(tmp_path: Path, columns: int, curve: Curve, expected: float) -> None:
    """Delta's paper has .54 for four columns along Z, Databricks .82 for two; the mean of the columns."""
    names, rng = "abcd"[:columns], np.random.default_rng(0)
    found = Lake(tmp_path / "t", pa.schema([(name, pa.int64()) for name in names]))
    found.append(pa.table({name: rng.integers(0, 1 << 40, 60_000) for name in names}), files=2)
    found.run(request(clustering=Clustering(tuple(names), curve), target_bytes=target(found, 100)))
    assert 95 <= len(found.files) <= 110
    assert np.mean(skipping(found, *names)) == pytest.approx(expected, abs=0.025)


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [True, False])
def test_skew_is_spread_and_buckets_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, noise: bool) -> None:
    """Nine rows of ten are equal, so that no range can cut them."""
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 15)
    sizes: list[list[int]] = []
    close = spill.Buckets.close

    def closing(self: spill.Buckets) -> None:
        sizes.append(list(self.bytes))
        close(self)

    monkeypatch.setattr(spill.Buckets, "close", closing)
    found = Lake(tmp_path / "t", SCHEMA)
    rows = rows_of(20_000)
    same = pa.array(np.where(np.arange(20_000) % 10, 7, np.arange(20_000)))
    found.append(rows.set_column(0, "a", same), files=4)
    before = found.rows()
    wanted = Clustering(("a",), Curve.Z, noise=noise)
    found.run(request(clustering=wanted, target_bytes=target(found, 8), task_bytes=1, wide_bytes=1 << 40))
    assert found.rows() == before
    assert len(sizes[0]) > 10 and max(sizes[0]) < 3 * sum(sizes[0]) / len(sizes[0])


def test_a_bucket_that_turns_out_too_large_is_sorted_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one range are longer than the rest, which a sample of the key columns cannot tell."""
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 16)
    rows = rows_of(8_000)
    long = ["x" * (2_000 if (n or 0) < 1 << 36 else 1) for n in rows.column("a").to_pylist()]
    found = Lake(tmp_path / "t", SCHEMA)
    found.append(rows.set_column(2, "s", pa.array(long)), files=4)
    parts: list[int] = []
    of_part = sorting._of_part
    monkeypatch.setattr(sorting, "_of_part", lambda *asked: parts.append(1) or of_part(*asked))
    before = found.rows()
    found.run(
        request(clustering=Clustering(("a",), Curve.Z), target_bytes=target(found, 8), task_bytes=1, wide_bytes=1 << 40)
    )
    assert parts
    assert found.rows() == before
    values = [[v for v in found.read(file).column("a").to_pylist() if v is not None] for file in found.files]
    assert all(column == sorted(column) for column in values)


@pytest.mark.slow
@settings(max_examples=examples(12), deadline=None)
@given(st.integers(1 << 12, 1 << 21), st.integers(1, 3_000), st.integers(1, 6), st.sampled_from(Curve), st.booleans())
def test_any_budget_gives_the_same_rows_and_the_same_order(
    tmp_path_factory: pytest.TempPathFactory, least: int, rows: int, files: int, curve: Curve, noise: bool
) -> None:
    """All rows are in the sample, so both paths cut the same ranges."""
    found = []
    for budget in (least, 1 << 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorting, "LEAST_BYTES", budget)
            each = lake(tmp_path_factory.mktemp("lake"), rows, files)
            wanted = Clustering(("a", "s"), curve, noise=noise)
            each.run(request(clustering=wanted, target_bytes=target(each, 4), task_bytes=1, wide_bytes=1 << 40))
            found.append((each.rows(), [_range(each, "a"), _range(each, "s")]))
    assert found[0][0] == found[1][0] == sorted(map(repr, rows_of(rows).to_pylist()))
    assert found[0][1] == found[1][1]


def _range(found: Lake, column: str) -> tuple[Any, Any]:
    values = [
        value for file in found.files for value in found.read(file).column(column).to_pylist() if value is not None
    ]
    return (min(values, default=None), max(values, default=None))


def test_no_more_buckets_than_files_can_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 14)
    monkeypatch.setattr(sorting, "MOST_BUCKETS", 3)
    found, counts = lake(tmp_path, 3_000), list[int]()
    spilled = sorting.spilled
    monkeypatch.setattr(sorting, "spilled", lambda count: counts.append(count) or spilled(count))
    before = found.rows()
    found.run(request(clustering=BY_TWO, target_bytes=target(found, 4), task_bytes=1, wide_bytes=1 << 40))
    assert counts == [3]
    assert found.rows() == before


def test_nothing_is_left_on_local_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "LEAST_BYTES", 1 << 14)
    disk = tmp_path / "disk"
    disk.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(disk))
    found, used = lake(tmp_path), []
    add = spill.Buckets.add

    def adding(self: spill.Buckets, rows: pa.Table, bucket: Any) -> None:
        used.extend(os.listdir(disk))
        if len(used) > 3:
            raise OSError("no space left on device")
        add(self, rows, bucket)

    asked = request(clustering=BY_TWO, target_bytes=target(found, 8), task_bytes=1, wide_bytes=1 << 40)
    with monkeypatch.context() as patch:
        patch.setattr(spill.Buckets, "add", adding)
        with pytest.raises(OSError, match="no space left"):
            found.run(asked)
    assert used and not os.listdir(disk)
    found.run(asked)
    assert not os.listdir(disk)


def test_deleted_rows_go_and_row_ids_stay(tmp_path: Path) -> None:
    found = lake(tmp_path, 5_000, 5, **ROW_TRACKING)
    first, second = found.files[:2]
    found.mark({first.path: range(0, 1000, 3), second.path: range(1000)})
    before = found.rows()
    assert len(before) == 5_000 - 334 - 1_000
    found.run(request(clustering=BY_TWO, target_bytes=target(found, 2)))
    assert found.rows() == before
    assert not [file for file in found.files if file.vector]
    names = found.read(found.files[0]).column_names
    assert names[-2:] == ["_row-id", "_row-version"]


@pytest.mark.extended
@pytest.mark.slow
def test_an_append_is_clustered_alone_and_skipping_stays(tmp_path: Path) -> None:
    """5 % more beside 100 clustered files: at most a quarter of the bytes, nine tenths of a full run's skipping."""
    found, other = lake(tmp_path / "one", 30_000, 10), lake(tmp_path / "two", 30_000, 10)
    size = target(found, 100)
    asked = request(clustering=BY_TWO, target_bytes=size)
    for each in (found, other):
        each.run(asked)
        each.append(rows_of(1_500, seed=1), files=5)
    assert len(found.files) > 80
    total = sum(file.bytes for file in found.files)
    assert found.run(asked).units[0].input_bytes <= 0.25 * total
    other.run(replace(asked, full=True))
    assert len({file.tags[CLUSTERED] for file in other.files}) == 1
    assert found.rows() == other.rows()
    for mine, best in zip(skipping(found, "a", "b"), skipping(other, "a", "b"), strict=True):
        assert mine >= 0.9 * best
    assert not found.plan(asked).units


@pytest.mark.slow
def test_repeated_appends_rewrite_a_row_a_few_times(tmp_path: Path) -> None:
    found = lake(tmp_path, 4_000, 4)
    asked = request(clustering=BY_TWO, target_bytes=target(found, 32))
    found.run(asked)
    rewritten = everything = 0
    for night in range(8):
        found.append(rows_of(400, seed=night + 1), files=2)
        everything += sum(file.bytes for file in found.files)
        rewritten += found.run(asked).units[0].input_bytes
        cubes = {file.tags[CLUSTERED] for file in found.files}
        assert len(cubes) <= 5
    assert rewritten < 0.6 * everything


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (("nothing",), "cluster by nothing: the table has no such column; a, b, s, ts, deep.x would work"),
        (("deep",), r"cluster by deep: expected a leaf of a struct, one of deep.x, deep.many"),
        (("deep.many",), "cluster by deep.many: its type list<.*> has no order"),
        (("a", "A"), "expected different columns, one is there twice"),
        (("day",), "cluster by day: it is a partition column"),
    ],
)
def test_columns_that_cannot_be_clustered_by_are_named(tmp_path: Path, columns: tuple[str, ...], said: str) -> None:
    found = Lake(tmp_path / "t", SCHEMA.append(pa.field("day", pa.string())), ["day"])
    found.append(rows_of(10), partition={"day": "x"})
    with pytest.raises(UsageError, match=said):
        found.plan(request(clustering=Clustering(columns, Curve.Z)))


def test_a_column_without_statistics_is_named(tmp_path: Path) -> None:
    found = lake(tmp_path, 10, 1, **{"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(UsageError, match=r"cluster by b: it has no statistics, .*; a would work"):
        found.plan(request(clustering=BY_TWO))


def test_the_budget_is_more_than_the_base_and_the_writer() -> None:
    assert tuning.BASE_BYTES + tuning.WRITE_BYTES < 1 << 30
