"""Policy -> the operations of a run that names none: those of the policy, else those that suit the table."""

from __future__ import annotations

from datetime import UTC, datetime

from nightkeep.admission.order import Order
from nightkeep.admission.reasons import case_of, reason_to_stay_closed
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy, depends_on_table


def suited_operations(policy: EffectivePolicy) -> tuple[Operation, ...]:
    """The operations to run, in order, at least one. Opens the table only if its policy names none and its format has
    several kinds of tables. A table that cannot be opened gets the format's first operation, whose run reports the
    reason.
    """
    possible = policy.operations
    if policy.settings.operations or not depends_on_table(policy.address.format):
        return possible
    plan = Order(possible[0], "suited", reports="", dry_run=True)
    if reason_to_stay_closed(case_of(policy, plan, datetime.now(UTC))):
        return possible[:1]
    try:
        suits = open_table(policy.address).suits
        return tuple(operation for operation in possible if suits(operation)) or possible[:1]
    except (NightkeepError, OSError):
        return possible[:1]
