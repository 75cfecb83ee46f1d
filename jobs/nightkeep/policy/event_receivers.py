"""PolicyFile and a kind of event -> its receivers."""

from __future__ import annotations

from collections.abc import Iterator

from nightkeep.errors import UsageError
from nightkeep.model.receivers import EventKind, Receiver
from nightkeep.policy.effective import PolicyFile


def receivers_of(policy: PolicyFile, table: str, kind: EventKind) -> tuple[Receiver, ...]:
    """The receivers of an event of a table. For a table without a valid policy, those of the defaults."""
    try:
        found: tuple[Receiver, ...] = getattr(policy.effective(table).settings.on, kind.value)
    except UsageError:
        return tuple(_of_layers(policy, kind, of_tables=False))
    return found


def receivers_of_run(policy: PolicyFile, kind: EventKind) -> tuple[Receiver, ...]:
    """The receivers of an event of a whole run: all that the policy names for this kind, for any table."""
    found = {receiver.key: receiver for receiver in _of_layers(policy, kind, of_tables=True)}
    return tuple(found.values())


def _of_layers(policy: PolicyFile, kind: EventKind, *, of_tables: bool) -> Iterator[Receiver]:
    more = [*(each.layer for each in policy.patterns), *(each.layer for each in policy.tables)] if of_tables else []
    for layer in (policy.defaults, *more):
        value, _ = (() if layer is None else layer.values.get(f"on.{kind}", ())) or ((), None)
        if isinstance(value, tuple):
            yield from value
