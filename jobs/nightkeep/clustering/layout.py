"""What a format says about its layout: the files of a version with their bounds, and a sample of its rows."""

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
"""Of columns by their paths."""


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
    """The files of a version as skipping sees them: of each its unit's place in the snapshot and its bytes.

    `bounds` has every column with statistics, by the name that conditions use (a nested field by its path); where no
    file has any, every column of which new files would have some.
    """

    unit: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    bounds: Mapping[str, FileBounds]

    @classmethod
    def of(cls, units: Sequence[Sequence[B]], bounds_of: Callable[[Sequence[B]], Bounds]) -> TableLayout:
        """Of the units' files in their order; `bounds_of` tells the bounds of columns by their paths."""
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
        """About `rows` rows of these columns, spread over the units by their size: a unit's place and its rows."""

    def target_bytes(self, snapshot: S_contra, request: Request) -> int:
        """The size of files that an optimisation asked for like this would write."""


OpenAdvisable = Advisable[Snapshot]
"""A table of whichever format."""
