"""Files of units -> the layout: where each file is, and which columns have bounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nightkeep.clustering.layout import Bounds, layout_of
from nightkeep.kernels.skipping import FileBounds


@dataclass(frozen=True)
class Held:
    """A file, and the bounds of its column `a.b`, if it has any."""

    bytes: int
    span: tuple[int, int] | None = None


UNITS = ((Held(10, (0, 4)), Held(20)), (), (Held(30),))


def bounds_of(files: Sequence[Held]) -> Bounds:
    lows, highs = (pa.array([file.span and file.span[side] for file in files], pa.int64()) for side in (0, 1))
    nothing = pa.nulls(len(files), pa.int64())
    rows = np.full(len(files), 5)
    return {("a", "b"): FileBounds(lows, highs, rows), ("c",): FileBounds(nothing, nothing, rows)}


def test_every_file_has_its_unit_and_its_bytes() -> None:
    found = layout_of(UNITS, bounds_of)
    assert (found.unit.tolist(), found.bytes.tolist()) == ([0, 0, 2], [10, 20, 30])


def test_columns_without_bounds_are_left_out_unless_none_has_any() -> None:
    found, bare = layout_of(UNITS, bounds_of), layout_of(UNITS[2:], bounds_of)
    assert (found.bounds.keys(), found.is_bounded) == ({"a.b"}, True)
    assert (bare.bounds.keys(), bare.is_bounded) == ({"a.b", "c"}, False)
