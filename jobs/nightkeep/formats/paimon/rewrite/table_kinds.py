"""Rules and refusals for one kind of Paimon table -> the same for every table: they have no effect on the other kind.

Tables with and without primary key share operations and nothing that these do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nightkeep.formats.paimon.metadata.schema import skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot, read_schemas
from nightkeep.formats.paimon.rewrite import lag
from nightkeep.formats.paimon.rewrite.append.optimize import LAYOUT
from nightkeep.model import Operation, Request, UnitKey
from nightkeep.protocol import Work
from nightkeep.storage import Storage

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


def suits(storage: Storage, operation: Operation) -> bool:
    """Whether the newest schema asks for this operation: upgrade where batch readers skip level 0, else optimize.

    Raises MissingFile or CorruptMetadata for schemas that cannot be read.
    """
    by_id = read_schemas(storage)
    schema = by_id[max(by_id)]
    upgrades = bool(schema.primary_keys) and skips_level0(schema)
    return operation is (Operation.UPGRADE if upgrades else Operation.OPTIMIZE)


def layout_metrics(before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """Levels and lag of a table with a primary key, skipping and overlap of one without."""
    if after.schema.primary_keys:
        return lag.layout_metrics(before, after, touched)
    return LAYOUT.layout_metrics(before, after, touched)
