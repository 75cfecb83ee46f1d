"""What layout is worth to readers: shares and overlaps of made bounds, counted by hand."""

import numpy as np
import pyarrow as pa

from nightkeep.clustering.layout_metrics import LOSING, layout_figures
from nightkeep.kernels.skipping import FileBounds


def bounds(*spans: tuple[int, int]) -> FileBounds:
    lows, highs = (pa.array([span[side] for span in spans], pa.int64()) for side in (0, 1))
    return FileBounds(lows, highs, np.full(len(spans), 100))


APART = bounds(*((100 * n, 100 * n + 99) for n in range(10)))
ALL_OVER = bounds(*[(0, 999)] * 10)


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
    before = bounds(*((100 * n, 100 * n + 99) for n in range(files)))
    after = bounds(*((100 * n, 100 * n + 299) for n in range(files)))
    found = layout_figures({"a": before}, {"a": after})
    lost = found["skipping"]["a"]["before"] - found["skipping"]["a"]["after"]  # type: ignore[index]
    assert 0 < lost < LOSING and found["losing"] == []


def test_bounds_that_no_file_claims_skip_nothing() -> None:
    nothing = FileBounds(pa.nulls(3, pa.int64()), pa.nulls(3, pa.int64()), np.full(3, 100))
    found = layout_figures({"a": nothing}, {"a": nothing})
    assert found["skipping"] == {"a": {"before": 0.0, "after": 0.0}}
