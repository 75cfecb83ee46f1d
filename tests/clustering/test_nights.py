"""Nights one after another: what clustering writes and queries read, by the rule that picks cubes."""

from math import log

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clustering.simulated_nights import (
    GROUPS,
    ROW_BYTES,
    TARGET,
    SimulatedCube,
    SimulatedUnit,
    one_percent_ranges,
    read_share,
)
from tests.support.examples import examples

FILE_ROWS = TARGET // ROW_BYTES
LARGE = 24 * FILE_ROWS
NIGHTS = 30


def keys(kind: str, night: int, rows: int) -> pa.Table:
    """`a` is uniform or skewed, `b` is the time of the night, a tenth of it late; both are uniform if `random`."""
    random = np.random.default_rng(night)
    a = random.zipf(1.3, rows) % 100_000 if kind == "skewed" else random.integers(0, 1 << 30, rows)
    late = np.where(random.random(rows) < 0.1, random.integers(0, 5, rows), 0)
    b = (night - late) * 86_400 + random.integers(0, 86_400, rows)
    return pa.table({"a": a.astype(np.int64), "b": random.integers(0, 1 << 30, rows) if kind == "random" else b})


@pytest.mark.parametrize("kind", ["uniform", "skewed"])
def test_large_nights_write_half_of_their_bytes_twice_and_are_read_less_than_whole_files_of_one_cube(kind: str) -> None:
    """Each night delta-spark's OPTIMIZE makes one cube of all rows, in files whose rows have no order inside."""
    unit, every = SimulatedUnit(), pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    for night in range(1, NIGHTS + 1):
        rows = keys(kind, night, LARGE)
        every = pa.concat_tables([every, rows])
        unit.append(rows)
        if night in (1, 10, 20, NIGHTS):
            ranges = one_percent_ranges(every)
            assert unit.read_share(ranges) < read_share(SimulatedCube.of("", every).files, ranges)
    assert unit.wrote <= 1.5 * unit.came


def test_cubes_are_merged_once_they_are_many_along_every_column() -> None:
    """And queries read less afterwards: what the rule expects of one cube is so."""
    unit, every, merged = SimulatedUnit(), [], []
    for night in range(1, NIGHTS + 1):
        every.append(keys("random", night, 3 * LARGE // 2))
        ranges = one_percent_ranges(pa.concat_tables(every))
        before = unit.read_share(ranges) if night > 1 else 1.0
        pick = unit.append(every[-1])
        if pick.why:
            merged.append((night, before / unit.read_share(ranges)))
    assert [night for night, _ in merged] == [26]
    assert merged[0][1] > 2
    assert unit.wrote <= 2 * unit.came


@pytest.mark.parametrize("kind", ["uniform", "skewed"])
def test_small_nights_are_written_a_few_times_until_their_cube_has_several_files(kind: str) -> None:
    unit = SimulatedUnit()
    for night in range(1, NIGHTS + 1):
        unit.append(keys(kind, night, FILE_ROWS // 3))
    assert unit.wrote <= 3.5 * unit.came
    assert len(unit.cubes) <= 5 and max(len(cube.files) for cube in unit.cubes) >= 4


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(st.integers(GROUPS, 4 * FILE_ROWS), min_size=1, max_size=25),
    st.sampled_from(["uniform", "skewed", "random"]),
)
def test_random_nights_write_a_byte_as_often_as_the_table_grows_by_half(sizes: list[int], kind: str) -> None:
    """Every night takes what came, and nothing is left for another run. A cube that is written again becomes larger by
    half at least."""
    unit = SimulatedUnit()
    for night, rows in enumerate(sizes, start=1):
        pick = unit.append(keys(kind, night, rows))
        assert len(pick.layout.loose) == 1
        assert not unit.pick().files
        assert unit.came == sum(cube.rows.num_rows for cube in unit.cubes)
    assert unit.wrote <= unit.came * (1 + log(sum(sizes) / min(sizes), 1.5))
