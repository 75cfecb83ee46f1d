"""Rules and refusals for one kind of Paimon table -> the same for every table: they say nothing of the other kind.

Tables with and without primary key share operations and nothing that these do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.rewrite import lag
from nightkeep.formats.paimon.rewrite.append import layout_metrics as append
from nightkeep.model import Request, UnitKey
from nightkeep.protocol import Work

T = TypeVar("T")
Refusal = Callable[[PaimonSnapshot, Request], None]
Rule = Callable[[PaimonSnapshot, Bucket, Request], Work[T] | None]


def of_keyed(refuse: Refusal, snapshot: PaimonSnapshot, request: Request) -> None:
    """What a table with a primary key is refused for."""
    if snapshot.schema.primary_keys:
        refuse(snapshot, request)


def of_keyless(refuse: Refusal, snapshot: PaimonSnapshot, request: Request) -> None:
    """What a table without primary key is refused for."""
    if not snapshot.schema.primary_keys:
        refuse(snapshot, request)


def in_keyed(rule: Rule[T], snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[T] | None:
    """The work of a rule in a table with a primary key."""
    return rule(snapshot, bucket, request) if snapshot.schema.primary_keys else None


def in_keyless(rule: Rule[T], snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[T] | None:
    """The work of a rule in a table without primary key."""
    return None if snapshot.schema.primary_keys else rule(snapshot, bucket, request)


def layout_metrics(before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """Levels and lag of a table with a primary key, skipping and overlap of one without."""
    if after.schema.primary_keys:
        return lag.layout_metrics(before, after, touched)
    return append.layout_metrics(before, after, touched)
