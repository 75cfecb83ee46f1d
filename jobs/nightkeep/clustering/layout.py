"""What a format tells of where its rows lie: the files of a version with their bounds, and a sample of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Address, Request
from nightkeep.protocol import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The files of a version as skipping sees them: of each its unit's place in the snapshot and its bytes.

    `bounds` has every column with statistics, by the name that conditions use (a nested field by its path); where no
    file has any, every column of which new files would have some.
    """

    unit: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    bounds: Mapping[str, FileBounds]

    @property
    def is_bounded(self) -> bool:
        """Whether any file has statistics."""
        return any(each.bounded.any() for each in self.bounds.values())


class Advisable(Protocol):
    """Verbs of a table whose layout can be judged."""

    @property
    def address(self) -> Address: ...

    def layout(self, snapshot: Snapshot[Any]) -> Layout:
        """The files of a version, from metadata only."""

    def sample(self, snapshot: Snapshot[Any], columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.Table]]:
        """About `rows` rows of these columns, spread over the units by their size: a unit's place and its rows."""

    def target_bytes(self, snapshot: Snapshot[Any], request: Request) -> int:
        """The size of files that an optimisation asked for like this would write."""
