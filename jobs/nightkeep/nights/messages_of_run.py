"""How the tables of a run ended -> the messages about them, to whom the policy names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from nightkeep.model.receivers import EventKind
from nightkeep.nights.settled import Settled
from nightkeep.nights.settled_documents import Documents
from nightkeep.notifications.events import table_event
from nightkeep.notifications.notices import notices_of
from nightkeep.notifications.sending import WEBHOOKS, Deliver, send
from nightkeep.policy import PolicyFile, receivers_of


def notify_of_tables(
    policy: PolicyFile,
    results: Iterable[Settled],
    documents: Documents,
    *,
    reports: str,
    prefix: str,
    link: str | None,
    deliver: Mapping[type, Deliver] = WEBHOOKS,
) -> None:
    """Send to whom the policy names what became of the tables of the run with this prefix. `deliver`: how to send to
    each kind of receiver."""
    events = [
        table_event(
            each.table,
            f"{prefix}:{each.table}",
            each.outcome,
            each.reason,
            [(address, documents[address]) for address in each.documents if address in documents],
        )
        for each in results
    ]
    send(notices_of(events, partial(receivers_of, policy), reports), reports, link=link, deliver=deliver)


def heard_results(policy: PolicyFile, results: Iterable[Settled]) -> list[Settled]:
    """Those whose outcome is sent to a receiver."""
    return [each for each in results if receivers_of(policy, each.table, EventKind(each.outcome.value))]
