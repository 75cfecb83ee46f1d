"""What queries read of cubes apart and together: by bounds of files, and by row groups inside of them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from tests.clustering.simulated_nights import BY, SimulatedFile, bounds_of

from nightkeep.clustering.cube_reads import CubeReads
from nightkeep.clustering.layout import dotted
from nightkeep.kernels.skipping import FileBounds

ROWS = 1000
FILES = 16
LARGE = 1 << 30
"""A target at which a file of the grid is one row group."""


def grid(cube: int, *, shift: int = 0) -> list[SimulatedFile]:
    """Sixteen files, each with a fourth of the values of `a` and a fourth of those of `b`, which begins at `shift`."""
    return [
        SimulatedFile(
            f"{cube}-{a}-{b}",
            ROWS,
            str(cube),
            {"a": (a * 250, a * 250 + 249), "b": (shift + b * 250, shift + b * 250 + 249)},
        )
        for a in range(4)
        for b in range(4)
    ]


def sized(bounds: Sequence[SimulatedFile]) -> dict[str, FileBounds]:
    return dict(dotted(bounds_of(bounds)))


def reads_of(*cubes: Sequence[SimulatedFile], target_bytes: int) -> CubeReads:
    return CubeReads.of(cubes, sized, BY.columns, target_bytes=target_bytes)


def test_a_query_reads_a_fourth_of_what_it_opens_of_files_with_sixteen_row_groups() -> None:
    size = grid(0)[0].bytes
    whole, inside = reads_of(grid(0), target_bytes=LARGE), reads_of(grid(0), target_bytes=size)
    assert whole.sizes.tolist() == inside.sizes.tolist() == [FILES * size]
    # A query of 1 % of the rows opens a fourth of the files, or half of them where it lies across their bounds.
    assert np.all((whole.largest > 0.25) & (whole.largest < 0.27))
    assert inside.largest == pytest.approx(whole.largest / 4)


def test_cubes_that_overlap_in_every_column_are_worth_merging_once_there_are_25() -> None:
    found = [worth(reads_of(*(grid(n) for n in range(count)), target_bytes=LARGE)) for count in (10, 22, 26)]
    assert found[:2] == [(0, 1.0), (0, 1.0)]
    assert found[2][0] == 26 and 5 <= found[2][1] < 5.5


def test_cubes_that_follow_each_other_in_a_column_are_read_little_of_by_it() -> None:
    """Queries by `b` open one cube of forty, so that queries of both columns gain too little by one cube of all."""
    reads = reads_of(*(grid(n, shift=1000 * n) for n in range(40)), target_bytes=LARGE)
    size = int(reads.sizes[0])
    assert reads.reads[:, 0].mean() > 10 * reads.reads[:, 1].mean()
    assert worth(reads) == (0, 1.0)
    assert np.all(reads.reads <= size)


def test_a_column_without_bounds_is_read_whole() -> None:
    def unbounded(files: Sequence[SimulatedFile]) -> dict[str, FileBounds]:
        nothing = pa.nulls(len(files), pa.int64())
        return {name: FileBounds(nothing, nothing, np.full(len(files), ROWS)) for name in BY.columns}

    reads = CubeReads.of([grid(0)], unbounded, BY.columns, target_bytes=LARGE)
    assert reads.largest.tolist() == [1.0, 1.0]
    assert reads.reads[0].tolist() == [float(reads.sizes[0])] * 2


def worth(reads: CubeReads) -> tuple[int, float]:
    return reads.worth_merging(0, new=0)
