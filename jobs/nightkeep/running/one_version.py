"""A table -> its readings for the plans of several operations, of one version that is read once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.model import Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable
from nightkeep.running.planned_work import Reading
from nightkeep.running.run_operation import read_opened


class OneVersion:
    """A TableReader for dry runs of one table. The table is opened once, and its newest version read once."""

    def __init__(self) -> None:
        self._table: OpenTable | None = None

    def __call__(self, policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading:
        """As `read_table`."""
        if self._table is None:
            table = open_table(policy.address)
            self._table = replace(table, outline=cache(table.outline or table.snapshot))
        return read_opened(self._table, policy, order, run, plans=plans)
