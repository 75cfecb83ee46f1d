"""Policies of many tables -> what of each does not fit its table."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.groups.each_in_child import each_in_child
from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.running.table_faults import TableFaults, table_faults


def faults_of_tables(policies: Sequence[EffectivePolicy]) -> tuple[TableFaults, ...]:
    """The faults of each policy, in order."""
    return each_in_child(policies, table_faults, _unread)


def _unread(policy: EffectivePolicy, outcome: Outcome, reason: str) -> TableFaults:
    return TableFaults(unread=reason)
