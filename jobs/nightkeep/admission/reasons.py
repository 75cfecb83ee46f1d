"""A case -> the reason to leave its table alone now, or None.

REASONS is the order in which every place asks: runs, plans, removals, status and a night's order. A reason that a
person can remove comes before one that time removes. A case is known in two steps: before its table is opened, `owner`,
`when` and `too_long` have no answer, and the others stop a run already. Afterwards the case has what was opened, and
the whole order is asked again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from functools import cache, partial
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import PREFIX, OwnerSettings
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, Window
from nightkeep.policy.when import Metrics, unmet
from nightkeep.records import held


class Act(Enum):
    """What is to be done in a case. Some acts are stopped by fewer reasons than work is."""

    WORK = auto()
    PLAN = auto()
    """Plan a rewrite and change nothing. The plan states the other reasons."""
    LIST = auto()
    """List the files that a sweep or an expiry would remove."""
    RESTORE = auto()
    """Undo a removal, or release a hold, which is always allowed."""
    AUDIT = auto()
    """Read what others committed, which a hold does not stop: it may be of use then."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What is known once the table is open. `metrics` are for the policy's condition, None if no condition counts.
    `seconds`: how long the work is expected to take."""

    owner: OwnerSettings = field(default_factory=OwnerSettings)
    metrics: Metrics | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operation on one table now. `hold` reads why the table is on hold. `left_out`: why the night has no budget
    left for the table. `opened` is None before the table is opened."""

    policy: EffectivePolicy
    operation: Operation
    now: datetime
    hold: Callable[[], str | None]
    left_out: str | None = None
    act: Act = Act.WORK
    opened: Opened | None = None


Reason = Callable[[Case], str | None]


def case_of(policy: EffectivePolicy, order: Order, now: datetime) -> Case:
    """The case of an order before its table is opened. Its hold is read at most once, when it is first asked for."""
    hold = cache(partial(_hold, order.reports, policy.address.name))
    act = _act(policy, order)
    return Case(policy=policy, operation=order.operation, now=now, hold=hold, left_out=order.left_out, act=act)


def reason_to_skip(case: Case) -> str | None:
    """The first of REASONS that holds and that stops the act."""
    return _first(case, REASONS)


def reason_to_stay_closed(case: Case) -> str | None:
    """Why the table is not opened at all, not even to look for what an earlier attempt of the run published."""
    return _first(case, tuple(reason for reason in REASONS if reason in _KEEPS_CLOSED))


def paused(case: Case) -> str | None:
    pause = case.policy.settings.pause
    return None if pause is None else f"paused: {pause}"


def uncovered(case: Case) -> str | None:
    return "discovered, and no pattern or entry covers it" if case.policy.uncovered else None


def on_hold(case: Case) -> str | None:
    return case.hold()


def owner(case: Case) -> str | None:
    """What the table's owner asks for. A list of files may be made outside the owner's window."""
    if case.opened is None:
        return None
    pause, hours = case.opened.owner.pause, case.opened.owner.window
    if pause is not None:
        return f"paused by its owner ({PREFIX}pause): {pause}"
    if hours is not None and case.act is not Act.LIST and not hours.contains(case.now):
        return f"outside its owner's window {hours} ({PREFIX}window)"
    return None


def window(case: Case) -> str | None:
    hours = case.policy.window(case.operation)
    return None if hours is None or hours.contains(case.now) else f"outside its window {hours}"


def budget(case: Case) -> str | None:
    return case.left_out


def when(case: Case) -> str | None:
    condition = case.policy.condition(case.operation)
    if condition is None or case.opened is None or case.opened.metrics is None:
        return None
    why = unmet(condition, case.opened.metrics)
    return None if why is None else f"when: {why}"


def too_long(case: Case) -> str | None:
    """Why the work would not end before the policy's window or the owner's closes."""
    if case.opened is None:
        return None
    both, seconds = (case.policy.window(case.operation), case.opened.owner.window), case.opened.seconds
    return next(filter(None, (_too_long(hours, seconds, case.now) for hours in both)), None)


REASONS: Final[tuple[Reason, ...]] = (paused, uncovered, on_hold, owner, window, budget, when, too_long)
"""The order of the answers."""
_KEEPS_CLOSED: Final = frozenset({paused, uncovered})
"""What keeps a table closed. The others allow to search for what an earlier attempt of the run published."""
_STOPPED_BY: Final[Mapping[Act, Set[Reason]]] = {
    Act.WORK: frozenset(REASONS),
    Act.PLAN: frozenset({paused}),
    Act.LIST: frozenset({paused, uncovered, owner}),
    Act.RESTORE: frozenset(),
    Act.AUDIT: frozenset({paused, uncovered, window, budget}),
}


def _act(policy: EffectivePolicy, order: Order) -> Act:
    if order.operation.rewrites:
        return Act.PLAN if order.dry_run else Act.WORK
    if order.operation in (Operation.RESTORE, Operation.RELEASE):
        return Act.RESTORE
    if order.operation is Operation.AUDIT:
        return Act.AUDIT
    return Act.LIST if order.mode_for(policy) is SweepMode.DRY_RUN else Act.WORK


def _first(case: Case, reasons: tuple[Reason, ...]) -> str | None:
    answers = (reason(case) for reason in reasons if reason in _STOPPED_BY[case.act])
    return next(filter(None, answers), None)


def _hold(reports: str, name: str) -> str | None:
    try:
        hold = held(reports, name)
    except CorruptMetadata as failure:
        # In doubt the table is on hold. A release removes an unreadable hold too.
        return f"on hold, why cannot be read: {failure}; to release it: nightkeep release {shlex.quote(name)}"
    if hold is None:
        return None
    return f"on hold since run {hold.run_id}: {hold.reason}; to release it: nightkeep release {shlex.quote(name)}"


def _too_long(hours: Window | None, seconds: float, now: datetime) -> str | None:
    if hours is None or not hours.contains(now) or seconds <= hours.left(now).total_seconds():
        return None
    left = hours.left(now).total_seconds()
    return f"would end outside its window {hours}: about {seconds:,.0f} s to do, and {left:,.0f} s are left"
