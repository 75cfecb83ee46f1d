"""Operation, units, bytes read and written -> seconds of a run, before any run of its table was measured. Pure.

`make bench-predictions` compares them with runs. Whatever the machine, what runs measure corrects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.model import Operation


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a run on two cores, the gate and the check among them, in a session that has done some: those that
    every run takes (metadata, a commit, Spark's jobs and the plans of its check), those of a unit, and those of a
    megabyte read or written. Where several tables are at work at once, of the part that is a table's own.
    """

    run: float
    unit: float
    megabyte: float


SESSION: Final = 8.0
"""Seconds until a session of Spark has its workers, which all of its tables share."""
_COSTS: Final[Mapping[Operation, Cost]] = {
    # A lookup reads keys, and not the rest of what is below.
    Operation.UPGRADE: Cost(1.5, 0.06, 0.015),
    # Gate and rewrite take 0.02 CPU seconds for a megabyte that is packed, 0.03 in order, 0.06 merged by key.
    Operation.OPTIMIZE: Cost(1.3, 0.06, 0.025),
    Operation.PERSIST_DELETES: Cost(0.9, 0.4, 0.02),
}
_OTHERS: Final = Cost(1.3, 0.06, 0.025)


def seconds_of(operation: Operation, *, units: int, reads: int, writes: int) -> float:
    """Seconds of all stages of a run. More than 0."""
    cost = _COSTS.get(operation, _OTHERS)
    return cost.run + cost.unit * units + cost.megabyte * (reads + writes) / (1 << 20)
