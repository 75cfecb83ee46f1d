"""Packed partitions: the same rows with the same ids, without vectors, in files of the size asked for."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.delta.lake import ROW_TRACKING, Lake, request
from tests.support.examples import examples

from nightkeep.formats.delta.rewrite.optimize import PACKED

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("day", pa.string())])


def rows_of(count: int, seed: int = 0) -> pa.Table:
    a = np.random.default_rng(seed).integers(0, 1 << 40, count)
    return pa.table({"a": pa.array(a, mask=a % 7 == 0), "s": [f"text {n % 97}" for n in a]})


def lake(folder: Path, **properties: str) -> Lake:
    found = Lake(folder / "t", SCHEMA, ["day"], {**ROW_TRACKING, **properties})
    for number, day in enumerate(("x", None)):
        found.append(rows_of(3_000, number), files=10, partition={"day": day})
    return found


def test_small_files_of_each_partition_become_files_near_the_target(tmp_path: Path) -> None:
    found = lake(tmp_path)
    before, size = found.rows(), found.files[0].bytes
    asked = request(target_bytes=int(size * 3.3))
    plan = found.run(asked)
    assert [str(unit.key) for unit in plan.units] == ["day=null", "day=x"]
    assert [len(unit.tasks) for unit in plan.units] == [3, 3]
    assert found.rows() == before
    assert len(found.files) == 8
    assert {len(file.tags.get(PACKED, "").split("/")) for file in found.files} == {1, 2}
    assert not found.plan(asked).units


def test_a_lone_file_is_purged_and_one_without_rows_goes_unread(tmp_path: Path) -> None:
    found = lake(tmp_path)
    for unit in found.snapshot.units:
        first, second, *_ = unit.files
        found.mark({first.path: range(30), second.path: range(second.rows or 0)})
        (found.folder / second.name).rename(found.folder / f"{second.name}.away")
    asked = request(min_bytes=0)
    plan = found.plan(asked)
    assert [unit.estimate.files_after for unit in plan.units] == [1, 1]
    for file in found.folder.rglob("*.away"):
        file.rename(str(file).removesuffix(".away"))
    before = found.rows()
    found.run(asked)
    assert found.rows() == before
    assert not [file for file in found.files if file.vector]
    assert not found.plan(asked).units


def test_a_partition_without_rows_is_removed_only(tmp_path: Path) -> None:
    found = lake(tmp_path)
    found.mark({file.path: range(file.rows or 0) for file in found.unit("day=x").files})
    plan = found.run(request(min_bytes=0))
    assert [(str(unit.key), unit.estimate.files_after) for unit in plan.units] == [("day=x", 0)]
    assert not found.unit("day=x").files


def test_a_large_file_that_is_purged_is_split(tmp_path: Path) -> None:
    found = Lake(tmp_path / "t", SCHEMA, ["day"])
    found.append(rows_of(20_000), partition={"day": "x"})
    (file,) = found.files
    found.mark({file.path: range(0, 20_000, 10)})
    before, size = found.rows(), file.bytes // 5
    found.run(request(target_bytes=size))
    assert found.rows() == before
    assert 4 <= len(found.files) <= 5 and all(0.5 * size < each.bytes < 1.5 * size for each in found.files)


def test_many_files_that_shrink_when_merged_are_left_the_next_time(tmp_path: Path) -> None:
    found = Lake(tmp_path / "t", SCHEMA, ["day"])
    found.append(rows_of(400), files=100, partition={"day": "x"})
    asked = request(target_bytes=10 * found.files[0].bytes)
    found.run(asked)
    assert all(file.bytes < asked.target_bytes / 2 for file in found.files if asked.target_bytes)
    assert not found.plan(asked).units


@settings(max_examples=examples(8), deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=8), st.floats(0.3, 8), st.floats(0, 0.4), st.data())
def test_any_layout_keeps_its_rows_and_is_then_left(
    tmp_path_factory: pytest.TempPathFactory, files: list[int], share: float, ratio: float, data: st.DataObject
) -> None:
    found = Lake(tmp_path_factory.mktemp("lake") / "t", SCHEMA, ["day"], ROW_TRACKING)
    for number, rows in enumerate(files):
        found.append(rows_of(rows, number), partition={"day": "x"})
    positions = st.sets(st.integers(0, min(files) - 1))
    found.mark({file.path: data.draw(positions) for file in found.files if data.draw(st.booleans())})
    before = found.rows()
    asked = request(target_bytes=int(found.files[0].bytes * share), max_deleted_ratio=ratio)
    found.run(asked)
    assert found.rows() == before
    assert not found.plan(asked).units
