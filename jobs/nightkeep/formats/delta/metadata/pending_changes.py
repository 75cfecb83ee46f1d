"""Rewrite of one unit -> files removed and files added, as the commit states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.model import Intent


@dataclass(frozen=True, slots=True)
class DeltaEdit:
    """The changes of one unit.

    `removed` are the files that the plan saw, with their vectors, so that a conflict can be detected. `added` are add
    actions without base row id and row commit version, which only a commit can assign. A file whose vector changes is
    in both. Several edits of one unit may name the same removed file: it is removed once. The edits of one commit have
    one intent. `rows_deleted` is the number of rows that they delete.
    """

    removed: tuple[DeltaDataFile, ...]
    added: tuple[Mapping[str, object], ...] = field(hash=False)
    intent: Intent = field(default_factory=Intent)
    rows_deleted: int = 0
