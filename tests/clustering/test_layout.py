"""Files of units -> the layout: where each file is, which columns have bounds, and what they are worth to readers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nightkeep.clustering.layout import LOSING, Bounds, layout_figures, layout_of
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


def figured(*spans: tuple[int, int]) -> FileBounds:
    lows, highs = (pa.array([span[side] for span in spans], pa.int64()) for side in (0, 1))
    return FileBounds(lows, highs, np.full(len(spans), 100))


APART = figured(*((100 * n, 100 * n + 99) for n in range(10)))
ALL_OVER = figured(*[(0, 999)] * 10)


def test_files_that_were_put_apart_skip_more_and_overlap_less() -> None:
    found = layout_figures({"a": ALL_OVER}, {"a": APART})
    assert found["overlap"] == {"a": {"before": 10.0, "after": 1.0}}
    assert found["skipping"]["a"]["before"] == 0.0  # type: ignore[index]
    assert 0.85 <= found["skipping"]["a"]["after"] <= 0.9  # type: ignore[index]
    assert found["losing"] == []


def test_a_column_that_skips_less_than_before_is_named() -> None:
    found = layout_figures({"a": ALL_OVER, "b": APART}, {"a": APART, "b": ALL_OVER})
    assert found["losing"] == ["b"]
    assert layout_figures({"b": APART}, {"b": APART})["losing"] == []


def test_a_small_loss_is_what_samples_miss_by() -> None:
    files = 400
    before = figured(*((100 * n, 100 * n + 99) for n in range(files)))
    after = figured(*((100 * n, 100 * n + 299) for n in range(files)))
    found = layout_figures({"a": before}, {"a": after})
    lost = found["skipping"]["a"]["before"] - found["skipping"]["a"]["after"]  # type: ignore[index]
    assert 0 < lost < LOSING and found["losing"] == []


def test_bounds_that_no_file_claims_skip_nothing() -> None:
    nothing = FileBounds(pa.nulls(3, pa.int64()), pa.nulls(3, pa.int64()), np.full(3, 100))
    found = layout_figures({"a": nothing}, {"a": nothing})
    assert found["skipping"] == {"a": {"before": 0.0, "after": 0.0}}
