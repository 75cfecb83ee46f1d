"""A table -> what a run reads of it before its work, as one value that pickles: another process may have read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from nightkeep.admission.order import Order
from nightkeep.errors import RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Committed, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable
from nightkeep.running.rewrites.planning import PlannedWork, plan_table


@dataclass(frozen=True, slots=True)
class Reading:
    """An opened table, and the commits that this run has already published.

    `planned` is None if there are such commits, if no plan was asked for, or if the table was never written to.
    """

    table: OpenTable
    published: Sequence[Committed] = ()
    planned: PlannedWork | None = None


class TableReader(Protocol):
    """Reads a table for a run. With `plans` unset it only looks for what the run has published."""

    def __call__(self, policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading: ...


def read_table(policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading:
    """Open the table, and plan unless this run has published something of it already. Reads metadata only.

    Raises what reading and planning raise.
    """
    return read_opened(open_table(policy.address), policy, order, run, plans=plans)


def read_opened(table: OpenTable, policy: EffectivePolicy, order: Order, run: Run, *, plans: bool) -> Reading:
    """As `read_table`, of an opened table."""
    # Look for this run's commits before anything can skip the table: they still need a check and a report.
    earlier = own_commits(order, table, run)
    if earlier or not plans:
        return Reading(table, earlier)
    try:
        return Reading(table, planned=plan_table(policy, order, table, run))
    except RefusedTable:
        late = own_commits(order, table, run)
        if not late:
            raise
        return Reading(table, late)


def own_commits(order: Order, table: OpenTable, run: Run) -> Sequence[Committed]:
    """The commits that this run has already published. Empty for a dry run, which does not look for any."""
    return () if order.dry_run else table.commits.committed(run)


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
