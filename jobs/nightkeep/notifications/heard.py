"""Events, and who asked for which -> the events that somebody hears of, with the receivers of each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from nightkeep.errors import NightkeepError
from nightkeep.model.receivers import EventKind, Receiver
from nightkeep.notifications.events import Event, hold_event
from nightkeep.notifications.sending import Heard
from nightkeep.records import held, holds_of
from nightkeep.redaction import redact

_log = logging.getLogger(__name__)


Asking = Callable[[str, EventKind], Sequence[Receiver]]
"""Who asked to hear of such an event of a table."""


def heard_of(events: Sequence[Event], asking: Asking, reports: str) -> Iterator[Heard]:
    """These events of tables, and the holds that stand on the tables, as far as somebody asked to hear of them.

    Every hold that stands counts, whoever put it: a check that a later run does may find what an earlier one left.
    """
    for event in events:
        if event.table is not None and (receivers := asking(event.table, event.kind)):
            yield Heard(event, receivers)
    of_holds = {
        event.table: receivers
        for event in events
        if event.table is not None and (receivers := asking(event.table, EventKind.HOLD))
    }
    for table in holds_of(reports, of_holds):
        try:
            hold = held(reports, table)
        except (NightkeepError, OSError) as failure:
            _log.warning("%s: its hold cannot be read: %s", table, redact(str(failure)))
            continue
        if hold is not None:
            yield Heard(hold_event(hold), of_holds[table])
