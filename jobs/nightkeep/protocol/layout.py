"""What a format provides to judge the layout of a table: its files with their bounds, and a sample of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.model import Request
from nightkeep.protocol.work import S

if TYPE_CHECKING:
    # What reads no layout must not load a kernel.
    from nightkeep.kernels.skipping import FileBounds


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """The files of a version: for each the index of its unit in the snapshot, its bytes, and bounds by column.

    `bounds` has every column with statistics, by the name that conditions use (a nested field by its path). If no file
    has statistics, it has the columns for which new files would have them.
    """

    unit: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    bounds: Mapping[str, FileBounds]

    @property
    def is_bounded(self) -> bool:
        """Whether any file has statistics."""
        return any(each.bounded.any() for each in self.bounds.values())


@dataclass(frozen=True, slots=True)
class LayoutReading(Generic[S]):
    """Functions of a format's room `rewrite`. Pickles."""

    read: Callable[[S], TableLayout]
    """The files of a version, from metadata only."""
    sample: Callable[[S, Sequence[str], int], Iterator[tuple[int, pa.Table]]]
    """Yields (index of the unit, rows of these columns): about so many rows in all, by the units' sizes."""
    target_bytes: Callable[[S, Request], int]
    """The target size in bytes of files that this request writes."""
