"""Files of a version -> its layout: their sizes and bounds; and the interface to sample its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Address, Request
from nightkeep.protocol import Snapshot

Bounds = Mapping[tuple[str, ...], FileBounds]
"""Bounds of columns by path."""


class Weighed(Protocol):
    """A data file with its bytes on storage."""

    @property
    def bytes(self) -> int: ...


B = TypeVar("B", bound=Weighed)
S_contra = TypeVar("S_contra", bound=Snapshot, contravariant=True)


def dotted(bounds: Bounds) -> Mapping[str, FileBounds]:
    """The same by dotted paths."""
    return {".".join(path): each for path, each in bounds.items()}


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """The files of a version: for each the index of its unit in the snapshot, its bytes, and bounds by column.

    `bounds` has every column with statistics, by the name that conditions use (a nested field by its path). If no file
    has statistics, it has the columns for which new files would have them.
    """

    unit: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    bounds: Mapping[str, FileBounds]

    @classmethod
    def of(cls, units: Sequence[Sequence[B]], bounds_of: Callable[[Sequence[B]], Bounds]) -> TableLayout:
        """The layout of the units' files, in order. `bounds_of` returns the bounds of columns by path."""
        files = [file for some in units for file in some]
        named = dotted(bounds_of(files))
        bounded = {name: each for name, each in named.items() if each.bounded.any()}
        return cls(
            np.array([place for place, some in enumerate(units) for _ in some], np.int64),
            np.array([file.bytes for file in files], np.int64),
            bounded or named,
        )

    @property
    def is_bounded(self) -> bool:
        """Whether any file has statistics."""
        return any(each.bounded.any() for each in self.bounds.values())


class Advisable(Protocol[S_contra]):
    """Verbs of a table whose layout can be judged."""

    @property
    def address(self) -> Address: ...

    def layout(self, snapshot: S_contra) -> TableLayout:
        """The files of a version, from metadata only."""

    def sample(self, snapshot: S_contra, columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield (index of the unit, rows of these columns): about `rows` rows in all, by the units' sizes."""

    def target_bytes(self, snapshot: S_contra, request: Request) -> int:
        """The target size in bytes of files that this request writes."""


OpenAdvisable = Advisable[Snapshot]
"""A table of whichever format."""
