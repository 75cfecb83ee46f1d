"""Bounds of two versions' files -> figures of their layouts: share of skipped files, number of overlapping files.

Uses statistics only: readers skip by nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeVar

from nightkeep.clustering.layout import Bounds, dotted
from nightkeep.kernels.skipping import overlap, queries_of, skipped_share
from nightkeep.model import UnitKey

LOSING: Final = 0.01
"""A column whose skipping falls by more than this share of files loses; less is within what a sample misses by."""
_DIGITS: Final = 4
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class UnitOfFiles(Protocol[T_co]):
    """A unit with its data files."""

    @property
    def files(self) -> Sequence[T_co]: ...


class Version(Protocol[T_co]):
    """A snapshot that finds its units by their keys."""

    @property
    def by_key(self) -> Mapping[UnitKey, UnitOfFiles[T_co]]: ...


def layout_figures(before: Bounds, after: Bounds) -> Mapping[str, object]:
    """JSON of `skipping` and `overlap` by column, before and after. Both sides have the same columns and units.

    `skipping` is the mean share of files that a query for 1 % of the rows does not open, with the same queries on both
    sides. `overlap` is the mean number of files that may contain a value. `losing` names columns that now skip less.
    """
    skipping, overlaps = {}, {}
    sides = dotted(before), dotted(after)
    for name, bounds in sides[1].items():
        queries = queries_of(bounds)
        skipping[name] = _pair([skipped_share(side[name], queries) for side in sides])
        overlaps[name] = _pair([overlap(side[name]) for side in sides])
    losing = [name for name, share in skipping.items() if share["before"] - share["after"] > LOSING]
    return {"skipping": skipping, "overlap": overlaps, "losing": losing}


def touched_files(version: Version[T], touched: Sequence[UnitKey]) -> list[T]:
    """The files of those touched units that the version has."""
    units = (version.by_key.get(key) for key in touched)
    return [file for unit in units if unit is not None for file in unit.files]


def _pair(values: Sequence[float]) -> dict[str, float]:
    before, after = (round(value, _DIGITS) for value in values)
    return {"before": before, "after": after}
