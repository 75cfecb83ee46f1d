"""Policy -> which operations the table can have, and what each is refused for. Reads metadata only."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.admission.order import Order
from nightkeep.admission.suited_operations import suited_operations
from nightkeep.errors import NightkeepError, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.records import failure_outcome
from nightkeep.running.rewrites.planning import request_of
from nightkeep.stages.plan import refusals


@dataclass(frozen=True, slots=True)
class HandledOperation:
    """One operation of the table's format. `refused_for` is empty for a table that it handles; `nightly` states whether
    a run that names no operation does it."""

    operation: Operation
    nightly: bool
    refused_for: tuple[str, ...] = ()


def handled_operations(policy: EffectivePolicy) -> tuple[HandledOperation, ...]:
    """Every operation of the format, in its order, with the features of this table that it is refused for.

    A table that cannot be read has the reason in place of features. A table without a version has none.
    """
    nightly = suited_operations(policy)
    try:
        table = open_table(policy.address)
        operations = (*table.operations, *(table.row_changes.operations if table.row_changes else ()))
        base = None if table.never_written() else table.snapshot()
    except (NightkeepError, OSError) as failure:
        why = (failure_outcome(failure, policy.address.name)[1],)
        return tuple(HandledOperation(operation, nightly=True, refused_for=why) for operation in nightly)
    return tuple(
        HandledOperation(
            operation, operation in nightly, () if base is None else _refusals(policy, table, base, operation)
        )
        for operation in operations
    )


def _refusals(policy: EffectivePolicy, table: OpenTable, base: Snapshot, operation: Operation) -> tuple[str, ...]:
    rows = None
    if operation not in table.operations and table.row_changes is not None:
        # Any condition: refusals look at the table, and none is refused for its rows.
        rows = f"`{table.row_changes.columns(base).names[0].replace('`', '``')}` IS NULL"
    order = Order(operation, "explain", reports="", dry_run=True, rows=rows)
    try:
        return refusals(table, base, request_of(policy, order, table, base, run=order.attempt()))
    except (UsageError, NightkeepError, OSError) as failure:
        return (str(failure),)
