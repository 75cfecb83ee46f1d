"""Policy -> why its table is refused as a whole, by a feature that whoever reads it must know. Reads the head alone."""

from __future__ import annotations

from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.policy import EffectivePolicy


def table_refusal(policy: EffectivePolicy) -> str | None:
    """The refusal, such as that of a catalog-managed Delta table; None for a table that is handled, and for one that
    cannot be read now: a command that works on it states why."""
    try:
        table = open_table(policy.address)
        if not table.never_written():
            table.description()
    except RefusedTable as refusal:
        return str(refusal)
    except (NightkeepError, OSError):
        return None
    return None
