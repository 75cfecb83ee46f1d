"""What a rewrite did to one unit, as a commit will say it: files gone, files added, and what had been asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightkeep.formats.delta.metadata import DataFile
from nightkeep.model import Clustering, Operation, Request


@dataclass(frozen=True, slots=True)
class Intent:
    """The part of a request that a table's history tells: a commit is staged from edits alone."""

    operation: Operation = Operation.OPTIMIZE
    where: str | None = None
    clustering: Clustering | None = None

    @classmethod
    def of(cls, request: Request) -> Intent:
        return cls(request.operation, request.where, request.clustering)


@dataclass(frozen=True, slots=True)
class DeltaEdit:
    """`removed` are files as they were planned on, vectors included, so that a conflict shows.

    `added` are add actions without what only a commit can know: base row id, row commit version. A file whose vector
    changes is in both. Several edits of one unit may name the same removed file: it is removed once. The edits of
    one commit have one intent. `rows_deleted` counts the rows that are gone with it.
    """

    removed: tuple[DataFile, ...]
    added: tuple[Mapping[str, object], ...] = field(hash=False)
    intent: Intent = Intent()
    rows_deleted: int = 0
