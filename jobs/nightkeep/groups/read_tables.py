"""Policies of many tables -> the status or the faults of each. Tables are read side by side, without Spark.

Each is read in a child process: metadata that kills its reader costs one table its answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from nightkeep.errors import STOPS, Interrupted, NightkeepError
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.children.child_process import ChildProcesses
from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import failure_outcome
from nightkeep.running.inspection.table_faults import TableFaults, table_faults
from nightkeep.running.inspection.table_refusal import table_refusal
from nightkeep.running.inspection.table_status import TableStatus, read_status
from nightkeep.spark.waiting_threads import waiting_threads

T = TypeVar("T")


def faults_of_tables(policies: Sequence[EffectivePolicy]) -> tuple[TableFaults, ...]:
    """The faults of each policy, in order."""
    return _each_in_child(policies, table_faults, _unread_faults)


def refusals(policies: Sequence[EffectivePolicy]) -> tuple[str | None, ...]:
    """Why each table is refused as a whole, in order; None for one that is not."""
    return _each_in_child(policies, table_refusal, lambda policy, outcome, reason: None)


def statuses(policies: Sequence[EffectivePolicy], reports: str, *, now: datetime) -> tuple[TableStatus, ...]:
    """The status of each table, in order."""
    return _each_in_child(policies, partial(read_status, reports=reports, now=now), _unread_status)


def _unread_faults(policy: EffectivePolicy, outcome: Outcome, reason: str) -> TableFaults:
    return TableFaults(unread=reason)


def _unread_status(policy: EffectivePolicy, outcome: Outcome, reason: str) -> TableStatus:
    address = policy.address
    return TableStatus(
        name=address.name, table=str(address), format=address.format, why=f"{outcome}: {reason}", unread=outcome
    )


def _each_in_child(
    policies: Sequence[EffectivePolicy],
    work: Callable[[EffectivePolicy], T],
    failed: Callable[[EffectivePolicy, Outcome, str], T],
) -> tuple[T, ...]:
    """The answers in order. `work` and its answers pickle. `failed` makes an answer of the outcome and the reason of a
    child that could not give one."""

    def one(policy: EffectivePolicy) -> T:
        if policy.address.format in OF_ONE_PROCESS:
            return work(policy)
        try:
            return apart.call(policy.address.name, partial(work, policy))
        except NightkeepError as failure:
            return failed(policy, *failure_outcome(failure, policy.address.name))

    count = min(len(policies), os.cpu_count() or 1)
    with ChildProcesses(count) as apart, waiting_threads(max(1, count), left_after=(Interrupted,)) as threads:
        try:
            return tuple(threads.map(one, policies))
        except STOPS:
            # The threads wait for the children.
            apart.end()
            raise
