"""Files of a version -> its layout: their sizes and bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from nightkeep.kernels.skipping import FileBounds
from nightkeep.protocol import TableLayout

Bounds = Mapping[tuple[str, ...], FileBounds]
"""Bounds of columns by path."""


class Weighed(Protocol):
    """A data file with its bytes on storage."""

    @property
    def bytes(self) -> int: ...


B = TypeVar("B", bound=Weighed)


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
