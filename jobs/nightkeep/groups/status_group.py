"""Policies of many tables -> the status of each, side by side, each read in a child process.

Metadata that kills its reader costs one table its status. No Spark takes part.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

from nightkeep.errors import NightkeepError
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.child_processes import ChildProcesses
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import failure_outcome
from nightkeep.running.table_status import TableStatus, read_status


def statuses(policies: Sequence[EffectivePolicy], reports: str, *, now: datetime) -> tuple[TableStatus, ...]:
    """The status of each table, in order."""
    count = min(len(policies), os.cpu_count() or 1)
    with ChildProcesses(count) as apart, ThreadPoolExecutor(max_workers=max(1, count)) as threads:
        return tuple(threads.map(lambda policy: _status(policy, reports, now, apart), policies))


def _status(policy: EffectivePolicy, reports: str, now: datetime, apart: ChildProcesses) -> TableStatus:
    work, address = partial(read_status, policy, reports, now=now), policy.address
    if address.format in OF_ONE_PROCESS:
        return work()
    try:
        return apart.call(address.name, work)
    except NightkeepError as failure:
        outcome, reason = failure_outcome(failure, address.name)
        return TableStatus(
            name=address.name, table=str(address), format=address.format, why=f"{outcome}: {reason}", unread=outcome
        )
