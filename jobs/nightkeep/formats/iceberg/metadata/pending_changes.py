"""The change that a rewrite makes to one unit: files removed, files added, deletes no longer needed."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, NewFile
from nightkeep.model import Intent


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """A data file with new positional deletes, and the identities of the old positional deletes merged into them."""

    path: str
    folded: frozenset[tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class IcebergEdit:
    """One task's change. `planned_sequence` is the sequence number of the planned snapshot.

    `removed` are data files and delete files of the planned snapshot. `added` are data files, position deletes and
    vectors. `targets` are data files that stay: the added positional deletes replace their old ones. `settled` are
    paths of data files that stay and need no equality delete of the planned snapshot: positional deletes cover every
    row that it deletes. The commit removes an equality delete when its edits settle or remove every older data file in
    its scope. All edits of a commit have the same `intent`. `rewrites_manifests` asks to merge the table's small
    manifests.
    """

    planned_sequence: int
    intent: Intent
    removed: tuple[ContentFile, ...] = ()
    added: tuple[NewFile, ...] = ()
    targets: tuple[DeleteTarget, ...] = ()
    settled: frozenset[str] = frozenset()
    rewrites_manifests: bool = False
