"""Statuses of tables + budgets -> which tables a night takes, and in which order. Pure.

Tables are taken by what work would save readers for what it costs (AutoComp's gain per cost), as long as they fit. A
table that was left out grows in priority with each night; one that was left out too often is taken whatever it costs.
So every table with work is taken after a bounded number of nights, and no order starves one.

The plan is made once, from statuses that read metadata only, before the first table is opened for work, and kept in a
file: all jobs of the night and their retries go by it. It is no promise. Each table is planned again when its turn
comes, and one that the plan leaves out gets a document whose reason begins with `budget: `. These are all that one
night knows of the nights before (`nights_waited`). A crash in the middle of a night leaves documents of the tables
that were done; a retry of the job finds what they published by its run ids, and does no table twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nightkeep.admission.past_metrics import BUDGET
from nightkeep.estimates.run_costs import SESSION
from nightkeep.model.night import NightPlace
from nightkeep.policy import PolicyFile
from nightkeep.policy.setting_types import Budget
from nightkeep.policy.units import format_size
from nightkeep.running.inspection.table_status import TableStatus

TASK_BYTES_PER_SECOND: Final = 16 << 20
"""Bytes that one task reads or writes in a second, with the gate."""


@dataclass(frozen=True, slots=True)
class NightBudget:
    """What `tables` may cost together; all tables if it is None. `name` is that of the night, or of a pattern. `start`:
    the seconds that each table takes of the start of its session."""

    name: str
    budget: Budget
    tables: frozenset[str] | None = None
    start: float = 0.0

    def holds(self, table: str) -> bool:
        """Whether the table is one of those."""
        return self.tables is None or table in self.tables


def budgets_of(policy: PolicyFile) -> tuple[NightBudget, ...]:
    """The budgets of a policy file: that of the night, and those of patterns."""
    start = SESSION / policy.tables_per_session
    night = [] if policy.budget is None else [NightBudget("the night", policy.budget, start=start)]
    return (
        *night,
        *(
            NightBudget(
                f"pattern {each.glob}",
                each.budget,
                frozenset(table.name for table in policy.tables if each.matches((table.name,), table.origin.file)),
                start,
            )
            for each in policy.patterns
            if each.budget is not None
        ),
    )


@dataclass
class _Left:
    """What is left of a budget while tables are taken from it. Figures without a limit have none."""

    budget: NightBudget
    figures: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(budget: NightBudget) -> _Left:
        limits = budget.budget
        figures = {
            "time": None if limits.time is None else limits.time / 1000,
            "task_time": None if limits.task_time is None else limits.task_time / 1000,
            "bytes": limits.bytes,
        }
        return _Left(budget, {name: limit for name, limit in figures.items() if limit is not None})

    def lacks(self, costs: Mapping[str, float]) -> str | None:
        """What the costs exceed; None if they fit."""
        for name, left in self.figures.items():
            if costs[name] > left:
                needed, there = (_shown(name, value) for value in (costs[name], max(0.0, left)))
                return f"it would take {needed} of {name}, and {there} are left of {self.budget.name}"
        return None

    def take(self, costs: Mapping[str, float]) -> None:
        for name in self.figures:
            self.figures[name] -= costs[name]


def night_order(statuses: Sequence[TableStatus], budgets: Sequence[NightBudget]) -> tuple[NightPlace, ...]:
    """The place of every table with work, in order. Tables without work, and those that are held back or cannot
    be read, have none: a night looks at them all the same, which costs next to nothing."""
    wait = min((each.budget.longest_wait for each in budgets), default=0)
    working = [each for each in statuses if each.score is not None and each.held_back is None]
    working.sort(key=lambda each: _urgency(each, wait), reverse=True)
    left = [_Left.of(budget) for budget in budgets]
    return tuple(_placed(each, n, len(working), left, wait) for n, each in enumerate(working, start=1))


def _urgency(status: TableStatus, wait: int) -> tuple[bool, float, str]:
    nights = status.nights_waited
    return (nights >= wait > 0, (status.score or 0) * (1 + nights) + (nights if nights >= wait else 0), status.name)


def _placed(status: TableStatus, place: int, of: int, budgets: Sequence[_Left], wait: int) -> NightPlace:
    mine = [each for each in budgets if each.budget.holds(status.name)]
    costs = {
        "time": status.seconds + max((each.budget.start for each in mine), default=0.0),
        "bytes": float(status.moved_bytes),
        "task_time": status.moved_bytes / TASK_BYTES_PER_SECOND,
    }
    why = f"place {place} of {of} by gain per cost, score {status.score or 0:.2f}"
    if status.nights_waited:
        why += f", left out for {status.nights_waited} night{'s' if status.nights_waited > 1 else ''}"
    lacks = next((lack for each in mine if (lack := each.lacks(costs))), None)
    overdue = status.nights_waited >= wait > 0
    if lacks and not overdue:
        return NightPlace(status.name, place, of, taken=False, reason=f"{BUDGET}{why}; {lacks}")
    for each in mine:
        each.take(costs)
    return NightPlace(status.name, place, of, taken=True, reason=f"{why}; {lacks}, but it has waited" if lacks else why)


def _shown(name: str, value: float) -> str:
    return format_size(int(value)) if name == "bytes" else f"{value:,.0f} s"
