"""What a rewrite changes in one unit: files removed, files added, deletes made superfluous."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, NewFile
from nightkeep.model import Intent


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """A data file that new position deletes speak of, and the positional deletes that were folded into them."""

    path: str
    folded: frozenset[tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class IcebergEdit:
    """One task's change, planned on the snapshot with `planned_sequence`.

    `removed` are data files and delete files as they were planned on; `added` are data files, position deletes and
    vectors. `targets` are the data files that stay and whose positional deletes are replaced by the added ones.
    `settled` are paths of data files that stay and whose rows no equality delete planned on hides any more that no
    position hides: an equality delete goes when every older data file in its scope is settled or gone, by all edits
    of the commit together. `intent` is one for all edits of a commit. With `rewrites_manifests` the table's small
    manifests become few.
    """

    planned_sequence: int
    intent: Intent
    removed: tuple[ContentFile, ...] = ()
    added: tuple[NewFile, ...] = ()
    targets: tuple[DeleteTarget, ...] = ()
    settled: frozenset[str] = frozenset()
    rewrites_manifests: bool = False
