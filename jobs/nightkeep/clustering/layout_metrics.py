"""Bounds of two versions' files -> what their layout is worth to readers: files that are skipped, files that overlap.

From statistics alone: what no file claims, no reader can skip by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nightkeep.kernels.skipping import FileBounds, overlap, queries_of, skipped_share

LOSING: Final = 0.01
"""A column whose skipping falls by more than this share of files loses; less is within what a sample misses by."""
_DIGITS: Final = 4


def layout_figures(before: Mapping[str, FileBounds], after: Mapping[str, FileBounds]) -> Mapping[str, object]:
    """JSON of the same columns of the same units: `skipping` and `overlap` by column, before and after.

    `skipping` is the mean share of files that a query for 1 % of the rows does not open, with the same queries on
    both sides; `overlap` the mean number of files that may hold a value. `losing` names columns that skip less.
    """
    skipping, overlaps = {}, {}
    for name, bounds in after.items():
        queries = queries_of(bounds)
        skipping[name] = _pair([skipped_share(side[name], queries) for side in (before, after)])
        overlaps[name] = _pair([overlap(side[name]) for side in (before, after)])
    losing = [name for name, share in skipping.items() if share["before"] - share["after"] > LOSING]
    return {"skipping": skipping, "overlap": overlaps, "losing": losing}


def _pair(values: Sequence[float]) -> dict[str, float]:
    before, after = (round(value, _DIGITS) for value in values)
    return {"before": before, "after": after}
