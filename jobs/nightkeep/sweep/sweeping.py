"""A table -> what it no longer needs, told, put aside or deleted. In doubt nothing goes."""

from __future__ import annotations

from nightkeep.model import Run
from nightkeep.sweep.order import Mode, SweepOrder, Swept
from nightkeep.sweep.sets import Sets
from nightkeep.territory import Sweeps

__all__ = ["Mode", "SweepOrder", "Swept", "sweep"]


def sweep(table: Sweeps, order: SweepOrder, run: Run, *, sets: Sets) -> Swept:
    """What was found stays readable through `sets` until it is closed.

    Raises UsageError for an age below the format's floor, EvidenceError where metadata and folder contradict each
    other or cannot be read, RefusedTable for what is not handled; nothing was touched then.
    """
    raise NotImplementedError
