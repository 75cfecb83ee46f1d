"""Policies of many tables -> the status of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from nightkeep.groups.each_in_child import each_in_child
from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.running.table_status import TableStatus, read_status


def statuses(policies: Sequence[EffectivePolicy], reports: str, *, now: datetime) -> tuple[TableStatus, ...]:
    """The status of each table, in order."""
    return each_in_child(policies, partial(read_status, reports=reports, now=now), _unread)


def _unread(policy: EffectivePolicy, outcome: Outcome, reason: str) -> TableStatus:
    address = policy.address
    return TableStatus(
        name=address.name, table=str(address), format=address.format, why=f"{outcome}: {reason}", unread=outcome
    )
