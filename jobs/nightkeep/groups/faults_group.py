"""Policies of many tables -> what of each does not fit its table, side by side, each read in a child process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nightkeep.errors import NightkeepError
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.child_processes import ChildProcesses
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import failure_outcome
from nightkeep.running.table_faults import TableFaults, table_faults


def faults_of_tables(policies: Sequence[EffectivePolicy]) -> tuple[TableFaults, ...]:
    """The faults of each policy, in order. Starts no Spark."""
    count = min(len(policies), os.cpu_count() or 1)
    with ChildProcesses(count) as apart, ThreadPoolExecutor(max_workers=max(1, count)) as threads:
        return tuple(threads.map(lambda policy: _faults(policy, apart), policies))


def _faults(policy: EffectivePolicy, apart: ChildProcesses) -> TableFaults:
    work, address = partial(table_faults, policy), policy.address
    if address.format in OF_ONE_PROCESS:
        return work()
    try:
        return apart.call(address.name, work)
    except NightkeepError as failure:
        return TableFaults(unread=failure_outcome(failure, address.name)[1])
