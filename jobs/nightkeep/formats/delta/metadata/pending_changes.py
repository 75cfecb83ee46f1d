"""What a rewrite changes in one unit: files removed and files added, as the commit states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightkeep.formats.delta.metadata.snapshot import DeltaDataFile
from nightkeep.model import Intent


@dataclass(frozen=True, slots=True)
class DeltaEdit:
    """`removed` are files as they were planned on, vectors included, so that a conflict shows.

    `added` are add actions without what only a commit can know: base row id, row commit version. A file whose vector
    changes is in both. Several edits of one unit may name the same removed file: it is removed once. The edits of
    one commit have one intent. `rows_deleted` counts the rows that are gone with it.
    """

    removed: tuple[DeltaDataFile, ...]
    added: tuple[Mapping[str, object], ...] = field(hash=False)
    intent: Intent = field(default_factory=Intent)
    rows_deleted: int = 0
