"""How runs ended -> the events that receivers get. Pure.

A table has one event for each run: the worst outcome of its operations. A hold is an event of its own, named by the run
that put the table on hold, so that it is one event however many runs find it. A run that is late has no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.model import Outcome
from nightkeep.model.receivers import EventKind
from nightkeep.records import Hold, RunDocument

_WORST_FIRST: Final = (
    EventKind.HOLD,
    EventKind.MISMATCH,
    EventKind.FAILED,
    EventKind.LATE,
    EventKind.CONFLICTED,
    EventKind.REFUSED,
    EventKind.SKIPPED,
    EventKind.UNCHANGED,
    EventKind.VERIFIED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened once. `table` is None for a run as a whole. `go_back` is the engine's own statement for a
    rollback, `document` the address of the document that states more."""

    kind: EventKind
    run_id: str
    table: str | None = None
    reason: str | None = None
    operation: str | None = None
    version: int | None = None
    go_back: str | None = None
    document: str | None = None

    @property
    def key(self) -> str:
        """The same text for the same event, whoever finds it."""
        return f"{self.kind} {self.run_id} {self.table or ''}"

    @property
    def rank(self) -> int:
        """The worst events are sent first."""
        return _WORST_FIRST.index(self.kind)


def table_event(
    table: str, run_id: str, outcome: Outcome, reason: str | None, documents: Sequence[tuple[str, RunDocument]]
) -> Event:
    """How a run ended for a table. `documents` are those of its operations, with their addresses, as far as they can be
    read."""
    of_outcome = [each for each in documents if each[1].outcome is outcome] or [*documents]
    address, document = of_outcome[0] if of_outcome else (None, None)
    return Event(
        kind=EventKind(outcome.value),
        run_id=run_id,
        table=table,
        reason=reason or None,
        operation=None if document is None else document.operation.value,
        version=None if document is None else document.committed_version,
        go_back=None if document is None else document.go_back,
        document=address,
    )


def documents_event(documents: Sequence[tuple[str, RunDocument]]) -> Event:
    """How a run ended for the table of these documents: there is at least one."""
    first = documents[0][1]
    outcome = Outcome.worst(document.outcome for _, document in documents)
    reasons = [
        f"{document.operation}: {document.reason}"
        for _, document in documents
        if document.outcome is outcome and document.reason
    ]
    return table_event(first.table, first.run_id, outcome, "; ".join(reasons), documents)


def hold_event(hold: Hold) -> Event:
    return Event(
        kind=EventKind.HOLD,
        run_id=hold.run_id,
        table=hold.table,
        reason=hold.reason,
        operation=hold.operation.value,
        version=hold.committed_version,
        go_back=hold.go_back,
    )


def late_event(run_id: str, reason: str) -> Event:
    return Event(kind=EventKind.LATE, run_id=run_id, reason=reason)
