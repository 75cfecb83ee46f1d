"""Operation + bytes read and written -> seconds of a run, before any run of the table was measured. Pure.

`make bench-predictions` measures what these constants say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.model import Operation


@dataclass(frozen=True, slots=True)
class Cost:
    """The seconds that every run takes (metadata, tasks, a commit, a check), and those for a byte read or written."""

    fixed: float
    read_byte: float
    written_byte: float


_MB: Final = 1 << 20
_COSTS: Final[Mapping[Operation, Cost]] = {}
_OTHERS: Final = Cost(1.0, 1 / (32 * _MB), 1 / (32 * _MB))


def seconds_of(operation: Operation, *, reads: int, writes: int) -> float:
    """Seconds of all stages of a run on two cores, the gate and the check among them. More than 0."""
    cost = _COSTS.get(operation, _OTHERS)
    return cost.fixed + cost.read_byte * reads + cost.written_byte * writes
