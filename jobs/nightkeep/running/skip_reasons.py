"""The policy and the hold of a table -> the reason to skip it now, or None."""

from __future__ import annotations

import shlex
from datetime import datetime

from nightkeep.errors import CorruptMetadata
from nightkeep.policy import EffectivePolicy
from nightkeep.reports import held


def skip_reason(policy: EffectivePolicy, reports: str, now: datetime) -> str | None:
    """Why the policy or a hold says to leave the table alone, or None."""
    settings, name = policy.settings, policy.address.name
    try:
        hold = held(reports, name)
    except CorruptMetadata as failure:
        # In doubt the table is on hold. A release lifts an unreadable hold too.
        return f"on hold, why cannot be read: {failure}; nightkeep release {shlex.quote(name)} lifts it"
    if hold is not None:
        return f"on hold since run {hold.run_id}: {hold.reason}; nightkeep release {shlex.quote(name)} lifts it"
    if settings.window is not None and not settings.window.contains(now):
        return f"outside its window {settings.window}"
    return None
