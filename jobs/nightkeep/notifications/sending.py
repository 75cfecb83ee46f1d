"""Notices -> messages, each sent once. Never raises for a receiver, and never takes long.

Receivers are served side by side, so that one that hangs delays no other. What is sent is marked before it is sent
(`records.sent_marks`): at most once. A receiver that does not answer gets no more of this call's messages, and those
have no mark: the next try of the run sends them.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from nightkeep.causes import failure_text
from nightkeep.errors import NightkeepError, NotAccepted
from nightkeep.model.receivers import Receiver, Webhook
from nightkeep.notifications.events import Event
from nightkeep.notifications.messages import Message, messages_of
from nightkeep.notifications.webhooks import post
from nightkeep.records.sent_marks import SendClaim, SentMark, claim, conclude, mark_name, withdraw
from nightkeep.redaction import redact

_log = logging.getLogger(__name__)

Deliver = Callable[[Receiver, Message], None]
"""Sends a message to a receiver of one kind. Raises whatever its client does where that fails."""

SECONDS: Final = 60.0
"""How long all receivers together are waited for."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An event, and the receivers that it is sent to."""

    event: Event
    receivers: Sequence[Receiver]


def _post(receiver: Receiver, message: Message) -> None:
    assert isinstance(receiver, Webhook)
    post(receiver, message)


WEBHOOKS: Final[Mapping[type, Deliver]] = {Webhook: _post}
"""What every process can send to."""


def send(
    notices: Iterable[Notice],
    reports: str,
    *,
    link: str | None = None,
    deliver: Mapping[type, Deliver] = WEBHOOKS,
    seconds: float = SECONDS,
) -> None:
    """Send each event to its receivers, but for those that have got it. `deliver` has the kinds of receivers that this
    process can send to; of others it is logged that they get nothing."""
    queues: dict[str, tuple[Receiver, list[Event]]] = {}
    for notice in notices:
        for receiver in notice.receivers:
            queues.setdefault(receiver.key, (receiver, []))[1].append(notice.event)
    _log_unavailable([receiver for receiver, _ in queues.values() if type(receiver) not in deliver])
    ends = time.monotonic() + seconds
    served = [
        threading.Thread(
            target=_serve, args=(receiver, events, reports, link, deliver[type(receiver)], ends), daemon=True
        )
        for receiver, events in queues.values()
        if type(receiver) in deliver
    ]
    for thread in served:
        thread.start()
    for thread in served:
        thread.join(max(0.0, ends - time.monotonic()))
    if hanging := sum(thread.is_alive() for thread in served):
        _log.warning("notifications: %d receivers gave no answer within %g s; nothing waits for them", hanging, seconds)


def _log_unavailable(receivers: Sequence[Receiver]) -> None:
    if receivers:
        named = ", ".join(dict.fromkeys(map(str, receivers)))
        _log.warning("notifications: %s: only a run in Airflow sends to these; they get no message of this one", named)


def _serve(
    receiver: Receiver, events: Sequence[Event], reports: str, link: str | None, deliver: Deliver, ends: float
) -> None:
    for message in messages_of(events, link):
        if time.monotonic() > ends or not _send_one(receiver, message, reports, deliver):
            return


def _send_one(receiver: Receiver, message: Message, reports: str, deliver: Deliver) -> bool:
    """Claim the events of a message, and send those that nobody has sent. False if nothing more is to be sent."""
    try:
        claimed = tuple(event for event in message.events if _claimed(event, receiver, reports))
    except (OSError, NightkeepError) as unmarked:
        _log.warning("%s: %s: cannot be marked as sent, so it is not: %s", receiver, message.title, _why(unmarked))
        return False
    if not claimed:
        return True
    left = replace(message, events=claimed)
    failure = _failure_of(deliver, receiver, left)
    if failure is not None:
        _log.warning("%s: %s: not delivered: %s", receiver, left.title, _why(failure))
    for event in claimed:
        name = mark_name(event.key, receiver.key)
        if failure is not None and not_reached(failure):
            withdraw(reports, name)
        else:
            ended = "sent" if failure is None else f"failed: {_why(failure)}"
            conclude(reports, name, replace(_mark(event, receiver), ended=ended))
    return failure is None or isinstance(failure, NotAccepted)


def _failure_of(deliver: Deliver, receiver: Receiver, message: Message) -> Exception | None:
    """The failure of a delivery, without its traceback: a notifier is anybody's code, and may raise anything, with the
    URL in it."""
    try:
        deliver(receiver, message)
    except Exception as failure:  # noqa: BLE001 -- see above
        return failure
    return None


def _claimed(event: Event, receiver: Receiver, reports: str) -> bool:
    found = claim(reports, mark_name(event.key, receiver.key), _mark(event, receiver))
    if found is SendClaim.UNKNOWN:
        _log.warning(
            "%s: %s: whoever was sending this ended midway; it may have arrived, and is not sent again",
            receiver,
            redact(event.key),
        )
    return found is SendClaim.FIRST


def _mark(event: Event, receiver: Receiver) -> SentMark:
    return SentMark(event=event.key, receiver=str(receiver), begun_at=datetime.now(UTC))


def _why(failure: Exception) -> str:
    """A sentence without the URL, which clients put in the messages of their errors."""
    if isinstance(failure, NotAccepted):
        return str(failure)
    if _caused_by(failure, (TimeoutError,)) or type(failure).__name__.endswith(("Timeout", "TimeoutError")):
        return "no answer in time"
    return redact(str(failure) if isinstance(failure, NightkeepError) else failure_text(_innermost(failure)))


def not_reached(failure: BaseException) -> bool:
    """Whether no connection was made, so that nothing can have arrived."""
    return _caused_by(failure, (ConnectionRefusedError, socket.gaierror)) or type(failure).__name__ == "ConnectTimeout"


def _caused_by(failure: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(each, kinds) for each in _chain(failure))


def _innermost(failure: BaseException) -> BaseException:
    return _chain(failure)[-1]


def _chain(failure: BaseException) -> list[BaseException]:
    """The failure and what it was raised of. Clients wrap errors of sockets with and without naming them as causes."""
    found = list[BaseException]()
    each: BaseException | None = failure
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found
