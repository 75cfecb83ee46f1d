"""What an audit of a table may read: by the table's policy, and by what is left of the budget of its run.

An audit begins while anything is left, and stops at the first unit that does not fit. Audits that are at work at the
same time do not know of each other before they end, so that each may take what was left when it began.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nightkeep.admission.order import AuditShare
from nightkeep.records.audit_spending import AuditSpending, add_audit_spending, audit_spending
from nightkeep.running.run_log import RunLog


@dataclass
class UnitBudget:
    """Bytes that an audit may still read, and until when, as `time.monotonic` counts. The first unit that is asked for
    always fits."""

    left: int
    until: float = math.inf
    spent: int = 0

    def takes(self, size: int) -> bool:
        if self.spent and (size > self.left or time.monotonic() > self.until):
            return False
        self.left -= size
        self.spent += size
        return True


@dataclass(frozen=True, slots=True)
class LeftBudget:
    """What is left for one audit. `lacks`: the sentence on the budget of the run that is used up, None if none is."""

    bytes: int
    time_ms: float = math.inf
    lacks: str | None = None
    share: AuditShare | None = None
    reports: str = ""

    @contextmanager
    def spending(self) -> Iterator[UnitBudget]:
        """The budget of an audit that begins now. What it takes counts for its run, however it ends."""
        began = time.monotonic()
        budget = UnitBudget(self.bytes, began + self.time_ms / 1000)
        try:
            yield budget
        finally:
            if self.share is not None:
                took = AuditSpending(bytes=budget.spent, time_ms=round((time.monotonic() - began) * 1000))
                add_audit_spending(self.reports, self.share.run, took)


def left_of(log: RunLog) -> LeftBudget:
    """What is left for the audit of a run log: by its order, by the table's policy, and by the budget of its run."""
    order, settings = log.order, log.policy.settings.audit
    own = settings.byte_budget if order.audit.byte_budget is None else order.audit.byte_budget
    share = order.audit.share
    if share is None:
        return LeftBudget(own)
    spent, limits = audit_spending(order.reports, share.run), share.budget
    size = own if limits.bytes is None else min(own, limits.bytes - spent.bytes)
    time_ms = math.inf if limits.time is None else limits.time - spent.time_ms
    lacks = None
    if size <= 0:
        lacks = f"audit_budget.bytes: the audits of this run have read {spent.bytes:,} bytes"
    elif time_ms <= 0:
        lacks = f"audit_budget.time: the audits of this run have taken {spent.time_ms / 1000:,.0f} s"
    return LeftBudget(size, time_ms, lacks, share, order.reports)
