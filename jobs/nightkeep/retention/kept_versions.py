"""What a removal keeps: versions that a check may still need, and the ages below which files stay."""

from __future__ import annotations

from typing import Final

from nightkeep.admission.order import Order
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable
from nightkeep.protocol.table_files import OpenFiles, Retention
from nightkeep.records import read_history

CHECK_WAIT_MS: Final = 7 * DAY_MS
"""How long a version waits for its check. Without a limit, a check that never runs would block every later expiry."""


def unchecked_versions(policy: EffectivePolicy, reports: str, *, now_ms: int) -> frozenset[int]:
    """Versions that a check may still need: those of unchecked runs of the last CHECK_WAIT_MS.

    Empty if the policy turns the check off. Raises CorruptMetadata for an unreadable document of that time: it may
    belong to such a run.
    """
    if not policy.settings.check.enabled:
        return frozenset()
    since_ms = now_ms - CHECK_WAIT_MS
    history = read_history(reports, policy.address.name)
    for document in history.unreadable:
        if document.modified_ms is None or document.modified_ms >= since_ms:
            raise document.error()
    waiting = [d for d in history.documents if d.awaits_check and d.finished_at.timestamp() * 1000 >= since_ms]
    named = [(d.base_version, d.parent_version, d.committed_version) for d in waiting]
    named += [(c.version, c.parent_version, None) for d in waiting for c in d.commits]
    return frozenset(version for versions in named for version in versions if version is not None)


def retained_files(table: OpenTable, operation: Operation) -> OpenFiles:
    """What a removal reads of the table. Raises RefusedTable for a format that has no such operation."""
    if table.retention is None:
        missing = f"operation {operation} does not exist for {table.address.format} tables"
        raise RefusedTable(table.address.name, missing, "leave it to its engine")
    return table.retention


def retention_settings(policy: EffectivePolicy, order: Order, *, now_ms: int) -> Retention:
    """What a sweep of the table with this order keeps."""
    asked = order.removal.older_than_ms
    older_than = policy.settings.sweep.older_than if asked is None else asked
    return Retention(now_ms, older_than, unchecked_versions(policy, order.reports, now_ms=now_ms))
