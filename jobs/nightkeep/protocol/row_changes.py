"""What a format provides for operations that change rows. They run only on request, never in a nightly run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa

from nightkeep.model import Operation
from nightkeep.protocol.work import OperationRules, S, T, U


@dataclass(frozen=True, slots=True)
class RowChanges(Generic[S, U, T]):
    """Pickles."""

    operations: Mapping[Operation, OperationRules[S, U, T]]
    """Operations that need `Request.rows`."""
    columns: Callable[[S], pa.Schema]
    """The columns that a condition on rows may name, with the names and types that `gate.rows` returns."""
    count_matching: Callable[[T], int]
    """How many visible rows the task would change. Writes nothing."""
