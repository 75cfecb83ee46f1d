"""Files of a version -> its layout: their sizes and bounds. Bounds of two versions -> figures of their layouts.

Uses statistics only: readers skip by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import numpy as np

from nightkeep.kernels.skipping import FileBounds, overlap, queries_of, skipped_share
from nightkeep.model import UnitKey
from nightkeep.protocol import TableLayout

LOSING: Final = 0.01
"""A column whose skipping falls by more than this share of files loses; less is within what a sample misses by."""
_DIGITS: Final = 4
Bounds = Mapping[tuple[str, ...], FileBounds]
"""Bounds of columns by path."""


class Weighed(Protocol):
    """A data file with its bytes on storage."""

    @property
    def bytes(self) -> int: ...


B = TypeVar("B", bound=Weighed)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def dotted(bounds: Bounds) -> Mapping[str, FileBounds]:
    """The same by dotted paths."""
    return {".".join(path): each for path, each in bounds.items()}


def layout_of(units: Sequence[Sequence[B]], bounds_of: Callable[[Sequence[B]], Bounds]) -> TableLayout:
    """The layout of the units' files, in order. `bounds_of` returns the bounds of columns by path."""
    files = [file for some in units for file in some]
    named = dotted(bounds_of(files))
    bounded = {name: each for name, each in named.items() if each.bounded.any()}
    return TableLayout(
        np.array([place for place, some in enumerate(units) for _ in some], np.int64),
        np.array([file.bytes for file in files], np.int64),
        bounded or named,
    )


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
