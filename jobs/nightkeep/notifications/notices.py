"""Events and the receivers that a policy names -> notices: the events that are to be sent, with their receivers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from nightkeep.errors import NightkeepError
from nightkeep.model.receivers import EventKind, Receiver
from nightkeep.notifications.events import Event, hold_event
from nightkeep.notifications.sending import Notice
from nightkeep.records import held, holds_of
from nightkeep.redaction import redact

_log = logging.getLogger(__name__)


ReceiversOf = Callable[[str, EventKind], Sequence[Receiver]]
"""The receivers of events of a kind of a table, by the policy."""


def notices_of(events: Sequence[Event], receivers_of: ReceiversOf, reports: str) -> Iterator[Notice]:
    """Notices of events of tables and of the holds on these tables. An event without receivers has none.

    A hold counts whichever run set it: a check of a later run may find what an earlier run left.
    """
    for event in events:
        if event.table is not None and (receivers := receivers_of(event.table, event.kind)):
            yield Notice(event, receivers)
    of_holds = {
        event.table: receivers
        for event in events
        if event.table is not None and (receivers := receivers_of(event.table, EventKind.HOLD))
    }
    for table in holds_of(reports, of_holds):
        try:
            hold = held(reports, table)
        except (NightkeepError, OSError) as failure:
            _log.warning("%s: its hold cannot be read: %s", table, redact(str(failure)))
            continue
        if hold is not None:
            yield Notice(hold_event(hold), of_holds[table])
