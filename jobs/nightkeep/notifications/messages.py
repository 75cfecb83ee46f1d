"""Events -> what a receiver gets: a title, text, HTML or JSON, all of it without credentials. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby
from typing import Final

from nightkeep.model.receivers import EventKind
from nightkeep.notifications.events import Event
from nightkeep.redaction import redact, redacted

_MOST_ALONE: Final = 10
"""So many events of one kind are messages of their own. A night in which more tables fail has one cause, most often,
and people read one message about it."""
_MOST_SHOWN: Final = 50
_LONGEST: Final = 2000
"""How many tables a text lists, and how many characters of a reason it shows. JSON has all."""


@dataclass(frozen=True, slots=True)
class Message:
    """Events of one kind for one receiver. `link` leads to the page of the run, if it has one."""

    events: tuple[Event, ...]
    link: str | None = None

    @property
    def kind(self) -> EventKind:
        return self.events[0].kind

    @property
    def title(self) -> str:
        first, more = self.events[0], len(self.events) - 1
        subject = first.table or "the run" if not more else f"{len(self.events)} tables"
        return redact(f"Nightkeep: {subject}: {_WORDS.get(self.kind, self.kind.value)}")

    @property
    def text(self) -> str:
        shown = [line for event in self.events[:_MOST_SHOWN] for line in _lines(event)]
        hidden = len(self.events) - _MOST_SHOWN
        more = [f"and {hidden} more"] if hidden > 0 else []
        return redact("\n".join([self.title, *shown, *more, *([f"report: {self.link}"] if self.link else [])]))

    @property
    def html(self) -> str:
        return "<br>\n".join(map(escape, self.text.splitlines()))

    def to_json(self) -> dict[str, object]:
        events = [{"event": event.kind.value, **_shown(event)} for event in self.events]
        return redacted({"title": self.title, "text": self.text, "link": self.link, "events": events})


def messages_of(events: Sequence[Event], link: str | None) -> Iterator[Message]:
    """The messages about these events, the worst first: one for each event, or one for all of a kind that are many."""
    for _, some in groupby(sorted(events, key=lambda event: event.rank), key=lambda event: event.kind):
        same = tuple(some)
        yield from [Message(same, link)] if len(same) > _MOST_ALONE else [Message((event,), link) for event in same]


_WORDS: Final = {EventKind.HOLD: "on hold", EventKind.LATE: "late"}


def _shown(event: Event) -> dict[str, object]:
    return {name: value for name, value in asdict(event).items() if name != "kind"}


def _lines(event: Event) -> Iterator[str]:
    reason = event.reason or ""
    cut = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
    yield ": ".join(filter(None, [event.table, cut])) or event.run_id
    if event.version is not None:
        yield f"version {event.version} is published"
    if event.go_back:
        yield f"to go back: {event.go_back}"
    if event.kind is EventKind.HOLD and event.table is not None:
        yield f"to work on it again: nightkeep release {shlex.quote(event.table)}"
