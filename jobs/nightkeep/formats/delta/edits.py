"""What one task changes of a partition: the files it replaces, with their vectors, and the add actions of new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightkeep.formats.delta.metadata import DataFile


@dataclass(frozen=True, slots=True)
class DeltaEdit:
    """`removed` are files as they were planned on, vectors included, so that a conflict shows.

    `added` are add actions without what only a commit can know: base row id, row commit version. A file whose vector
    changes is in both. Several edits of one unit may name the same removed file: it is removed once.
    """

    removed: tuple[DataFile, ...]
    added: tuple[Mapping[str, object], ...] = field(hash=False)
