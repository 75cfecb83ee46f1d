"""The policy and the hold of a table -> the reason to skip it now, or None."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import held

UNCOVERED: Final = "discovered, and no pattern or entry covers it"
"""Why a table that was only found is left alone."""


def left_alone(policy: EffectivePolicy, *, looks: bool) -> str | None:
    """Why the table is not even opened, or None. `looks`: nothing is done, so that no pattern has to cover it."""
    if policy.settings.pause is not None:
        return f"paused: {policy.settings.pause}"
    return UNCOVERED if policy.uncovered and not looks else None


def skip_reason(policy: EffectivePolicy, operation: Operation, reports: str, now: datetime) -> str | None:
    """Why the policy, or that there is none, or a hold says to leave the table alone, or None."""
    window, name = policy.window(operation), policy.address.name
    if policy.uncovered:
        return UNCOVERED
    try:
        hold = held(reports, name)
    except CorruptMetadata as failure:
        # In doubt the table is on hold. A release lifts an unreadable hold too.
        return f"on hold, why cannot be read: {failure}; nightkeep release {shlex.quote(name)} lifts it"
    if hold is not None:
        return f"on hold since run {hold.run_id}: {hold.reason}; nightkeep release {shlex.quote(name)} lifts it"
    return None if window is None or window.contains(now) else f"outside its window {window}"
