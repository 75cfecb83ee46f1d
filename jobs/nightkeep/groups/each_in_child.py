"""Policies of many tables -> what a function answers of each, side by side, each in a child process, without Spark.

Metadata that kills its reader costs one table its answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from nightkeep.errors import STOPS, Interrupted, NightkeepError
from nightkeep.formats import OF_ONE_PROCESS
from nightkeep.groups.child_processes import ChildProcesses
from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import failure_outcome
from nightkeep.spark.waiting_threads import waiting_threads

T = TypeVar("T")


def each_in_child(
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
